// What an executor measures of its steps.
#include "runtime/step_times.h"

#include <chrono>
#include <variant>

#include "runtime/executor.h"

namespace hone {

namespace {

using Clock = std::chrono::steady_clock;

struct Namer {
  StepTime& time;
  void operator()(const plan::KernelStep& step) const { set(StepTime::Kind::kKernel, step.symbol); }
  void operator()(const plan::LibraryStep& step) const { set(StepTime::Kind::kLibrary, step.row); }
  void operator()(const plan::HostStep& step) const { set(StepTime::Kind::kHost, step.function); }
  void operator()(const plan::CopyStep&) const { set(StepTime::Kind::kCopy, "copy"); }
  void operator()(const plan::AllReduceStep& step) const { set(StepTime::Kind::kCopy, std::string(plan::to_string(step.operation))); }
  void operator()(const plan::ReadSizesStep&) const { set(StepTime::Kind::kCopy, "read_sizes"); }
  void operator()(const plan::RegionStep& step) const {
    using Kind = plan::RegionStep::Kind;
    set(StepTime::Kind::kRegion, step.kind == Kind::kScan ? "scan" : step.kind == Kind::kWhile ? "while" : "branch");
  }
  void set(StepTime::Kind kind, std::string what) const {
    time.kind = kind;
    time.what = std::move(what);
  }
};

}  // namespace

std::string name_of(const plan::Step& step) {
  StepTime time;
  std::visit(Namer{time}, step.what);
  return time.what;
}

void Executor::measure(bool on) {
  measured_.assign(on ? entry_.steps.size() : 0, {});
  for (const auto& bodies : bodies_)
    for (const auto& body : bodies) body->measure(on);
}

void Executor::execute_measured(BoundSegment& bound) {
  Clock::time_point begin = Clock::now();
  const auto done = [&](std::uint32_t step) {
    const Clock::time_point end = Clock::now();
    measured_[step].seconds += std::chrono::duration<double>(end - begin).count();
    ++measured_[step].runs;
    begin = end;
  };
  for (std::size_t i = 0; i < bound.steps.size(); ++i) {
    if (const auto* run = std::get_if<KernelRun>(&bound.steps[i])) {
      if (state_.device == nullptr) {
        execute_one_by_one(*run, state_.team, [&](const BoundKernel& kernel) { done(kernel.step); });
        continue;
      }
      for (const BoundKernel& kernel : run->kernels) {
        state_.device->run(kernel);
        state_.device->finish();
        done(kernel.step);
      }
      continue;
    }
    std::visit([this](auto& what) { execute(what); }, bound.steps[i]);
    if (state_.device != nullptr) state_.device->finish();
    done(bound.step_numbers[i]);
    if (std::holds_alternative<BoundWait>(bound.steps[i])) --measured_[bound.step_numbers[i]].runs;  // it is part of its exchange
  }
}

std::vector<StepTime> Executor::step_times() const {
  std::vector<StepTime> times;
  std::size_t regions = 0;
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    StepTime time{.origin = entry_.steps[i].origin, .runs = measured_[i].runs, .seconds = measured_[i].seconds};
    std::visit(Namer{time}, entry_.steps[i].what);
    const std::size_t at = times.size();
    times.push_back(time);
    if (time.kind != StepTime::Kind::kRegion) continue;
    for (const auto& body : bodies_[regions++]) {
      const std::vector<StepTime> inner = body->step_times();
      for (const StepTime& one : inner) times[at].inner_seconds += one.seconds - one.inner_seconds;
      times.insert(times.end(), inner.begin(), inner.end());
    }
  }
  return times;
}

}  // namespace hone
