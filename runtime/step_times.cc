// What an executor measures of its steps.
#include "runtime/step_times.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include "runtime/executor.h"
#include "runtime/plan/step_name.h"

namespace hone {

namespace {

using Clock = std::chrono::steady_clock;

/// Of an exchange and of what reads sizes a copy: neither computes anything.
struct KindOf {
  using Kind = StepTime::Kind;
  Kind operator()(const plan::KernelStep&) const { return Kind::kKernel; }
  Kind operator()(const plan::LibraryStep&) const { return Kind::kLibrary; }
  Kind operator()(const plan::HostStep&) const { return Kind::kHost; }
  Kind operator()(const plan::RegionStep&) const { return Kind::kRegion; }
  template <typename Other>
  Kind operator()(const Other&) const { return Kind::kCopy; }
};

}  // namespace

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
  const DimBindings sizes = current_ == nullptr ? DimBindings() : current_->sizes;
  const auto all_runs = [&](const Dim& amount, std::int64_t runs) { return runs == 0 ? 0.0 : static_cast<double>(amount.evaluate(sizes)) * static_cast<double>(runs); };
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const plan::Step& step = entry_.steps[i];
    const std::int64_t runs = measured_[i].runs;
    StepTime time{.kind = std::visit(KindOf{}, step.what), .what = name_of(step), .origin = step.origin, .nodes = step.nodes, .runs = runs, .seconds = measured_[i].seconds, .flops = all_runs(step.flops, runs), .bytes = all_runs(step.bytes, runs)};
    const std::size_t at = times.size();
    times.push_back(time);
    if (time.kind != StepTime::Kind::kRegion) continue;
    for (const auto& body : bodies_[regions++]) {
      const std::vector<StepTime> inner = body->step_times();
      for (const StepTime& one : inner) times[at].inner_seconds += one.seconds - one.inner_seconds;
      times.insert(times.end(), inner.begin(), inner.end());
    }
    const bool is_call = std::get<plan::RegionStep>(step.what).kind == plan::RegionStep::Kind::kCall;
    if (is_call and std::all_of(times.begin() + static_cast<std::ptrdiff_t>(at) + 1, times.end(), [](const StepTime& one) { return one.runs == 0; })) times[at].kind = StepTime::Kind::kLibrary;
  }
  return times;
}

}  // namespace hone
