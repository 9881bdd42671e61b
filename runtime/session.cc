#include "runtime/session.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "runtime/device/cpu.h"
#include "runtime/device/devices.h"
#include "runtime/executor.h"
#include "runtime/not_finite.h"

namespace hone {
namespace {

void check_device(const std::string& device) {
  if (device == "auto" or device == "cpu") return;
  for (const DeviceInfo& info : list_devices())
    if (device == info.name or device.starts_with(info.name + ":"))
      throw Error(Code::kDevice, fmt::format("device {} cannot be used: {}", quoted(device), info.usable ? "it has no numbers" : info.reason), {},
                  {"use --device cpu"});
  throw Error(Code::kDevice, fmt::format("there is no device {}", quoted(device)), {}, {"hone-run devices lists them"});
}

const plan::Program& program_for_cpu(const plan::Plan& plan) {
  std::vector<std::string> targets;
  for (const plan::Program& program : plan.programs) {
    if (program.target == "cpu") return program;
    targets.push_back(program.target);
  }
  throw Error(Code::kPlanMismatch, fmt::format("the plan has no program for cpu, only for {}", targets.empty() ? "nothing" : printable(join(targets, ", "))),
              {}, {"compile the model with --target cpu"});
}

/// Puts a value where the persistent lies.
void put(const plan::Persistent& persistent, const Tensor& value, std::byte* place) {
  if (persistent.panels) plan::copy_to_panels(value, *persistent.panels, place);
  else if (value.byte_count() > 0) std::memcpy(place, value.bytes().data(), value.byte_count());
}

/// Places the persistents one after the other, copies their initial contents, and lets go of these: zeros of the same type stand for them.
void initialize_persistents(plan::Program& program, HostState& state) {
  std::vector<std::size_t> offsets;
  std::size_t total = 0;
  for (const plan::Persistent& persistent : program.persistents) {
    offsets.push_back(total);
    total = checked_add(total, persistent.initial.byte_count() + kTensorAlignment - 1, "the weights") / kTensorAlignment * kTensorAlignment;
  }
  state.persistent_memory = HostMemory(total, "the memory for weights and optimizer state");
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    state.persistents.push_back(state.persistent_memory.data() + offsets[i]);
    Tensor& initial = program.persistents[i].initial;
    put(program.persistents[i], initial, state.persistents[i]);
    initial = Tensor::zeros(initial.dtype(), initial.shape());
  }
}

}  // namespace

struct Session::Impl {
  plan::Program program;
  HostState state;
  std::vector<std::unique_ptr<Executor>> executors;
  const Executor* last = nullptr;  // whose results can be read

  explicit Impl(const SessionOptions& options)
      : state{.team = Team(thread_count(options.threads)), .code = {}, .kernels = {}, .persistent_memory = {}, .persistents = {}, .arena = {}, .exchanges = Exchanges(options.communicator), .shards = static_cast<std::size_t>(options.shards), .collected = {}} {}

  Executor* find(std::string_view entry) const {
    for (const auto& executor : executors)
      if (executor->entry().name == entry) return executor.get();
    return nullptr;
  }

  Executor& get(std::string_view entry) const {
    if (Executor* executor = find(entry)) return *executor;
    std::vector<std::string> names;
    for (const auto& executor : executors) names.push_back(executor->entry().name);
    throw Error(Code::kPlanEntry, fmt::format("the plan has no entry {}", quoted(entry)), {},
                {fmt::format("it has {}", names.empty() ? "none" : printable(join(names, ", "))), "a plan compiled without a recipe can predict, not train"});
  }

  std::size_t persistent_number(std::string_view name) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < program.persistents.size(); ++i) {
      if (program.persistents[i].name == name) return i;
      names.push_back(program.persistents[i].name);
    }
    std::vector<std::string> notes = {names.empty() ? "it has none" : "it has " + printable(join(names, ", "))};
    if (std::string hint = did_you_mean(name, names); not hint.empty()) notes.push_back(std::move(hint));
    throw Error(Code::kPlanMismatch, fmt::format("the plan has no weight or state {}", quoted(name)), {}, std::move(notes));
  }
};

Session::Session(const plan::Plan& plan, SessionOptions options) {
  check_device(options.device);
  plan::check(plan);
  impl_ = std::make_unique<Impl>(options);
  const plan::Program& program = program_for_cpu(plan);
  impl_->state.code = load_code(program);
  impl_->program = {.target = program.target, .code = {}, .persistents = program.persistents, .entries = program.entries};  // the code is loaded now
  impl_->state.kernels = check_steps(impl_->program, impl_->state.code);
  initialize_persistents(impl_->program, impl_->state);
  for (const plan::Entry& entry : impl_->program.entries) impl_->executors.push_back(std::make_unique<Executor>(entry, impl_->state, &impl_->state.arena));
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const plan::Program& Session::program() const { return impl_->program; }
int Session::thread_count(int asked) {
  if (asked < 0) throw Error(Code::kUsage, fmt::format("{} threads are asked for", asked), {}, {"0 takes as many as there are cores"});
  return asked == 0 ? usable_cores() : asked;
}

int Session::threads() const { return impl_->state.team.threads(); }
bool Session::has_entry(std::string_view entry) const { return impl_->find(entry) != nullptr; }
const plan::Entry& Session::entry(std::string_view entry) const { return impl_->get(entry).entry(); }

void Session::run(std::string_view entry, std::span<const std::pair<std::string, TensorView>> feeds) {
  Executor& executor = impl_->get(entry);
  impl_->last = nullptr;  // a run that fails leaves nothing to read
  try {
    executor.run(feeds);
  } catch (...) {
    impl_->state.collected.clear();  // which is of a step that will never be whole
    throw;
  }
  impl_->last = &executor;
}

NotFiniteReport Session::find_not_finite(std::string_view entry, std::span<const std::pair<std::string, TensorView>> feeds) {
  Executor& executor = impl_->get(entry);
  impl_->last = nullptr;
  NotFiniteFinder finder;
  const auto note = [](std::vector<ValueRange>& list, const std::string& name, const TensorView& tensor) {
    auto range = range_of(name, tensor);
    if (range and not range->is_finite()) list.push_back(std::move(*range));
  };
  for (const auto& [name, tensor] : feeds) note(finder.report.feeds, name, tensor);
  for (const plan::Persistent& persistent : impl_->program.persistents)
    if (persistent.role != plan::Persistent::Role::kConstant) note(finder.report.weights, persistent.name, read(persistent.name));
  struct Watching {
    Executor& executor;
    ~Watching() { executor.watch(nullptr); }
  } watching{executor};
  executor.watch(&finder);
  executor.run(feeds);
  impl_->state.collected.clear();  // a shard's: it was computed to be looked at only
  return std::move(finder.report);
}

TensorView Session::result(std::string_view name) const {
  if (impl_->last == nullptr) throw Error(Code::kDataName, fmt::format("there is no result {}: no run has finished yet, or the last one failed", quoted(name)), {}, {"run an entry first"});
  const plan::Entry& entry = impl_->last->entry();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < entry.results.size(); ++i) {
    if (entry.results[i].name == name) return impl_->last->result(i);
    names.push_back(entry.results[i].name);
  }
  throw Error(Code::kDataName, fmt::format("{} has no result {}", entry.name, quoted(name)), {},
              {fmt::format("it has {}", names.empty() ? "none" : printable(join(names, ", ")))});
}

Tensor Session::result_tensor(std::string_view name) const {
  const TensorView view = result(name);
  const std::size_t bytes = static_cast<std::size_t>(checked_element_count(view.shape)) * size_of(view.dtype);
  return Tensor::copy(view.dtype, view.shape, {static_cast<const std::byte*>(view.data), bytes});
}

Tensor Session::read(std::string_view persistent) const {
  const std::size_t number = impl_->persistent_number(persistent);
  const plan::Persistent& described = impl_->program.persistents[number];
  const Tensor& like = described.initial;
  const std::byte* lies = impl_->state.persistents[number];
  if (described.panels) return plan::from_panels(lies, like.dtype(), like.shape(), *described.panels);
  return Tensor::copy(like.dtype(), like.shape(), {lies, like.byte_count()});
}

void Session::write(std::string_view persistent, const Tensor& value) {
  const std::size_t number = impl_->persistent_number(persistent);
  const Tensor& like = impl_->program.persistents[number].initial;
  if (value.dtype() != like.dtype() or value.shape() != like.shape())
    throw Error(Code::kPlanMismatch, fmt::format("{} is {}{}, but {}{} is given", quoted(persistent), to_string(like.dtype()), shape_text(like.shape()),
                                                 to_string(value.dtype()), shape_text(value.shape())), {},
                {"a weight keeps the type and shape that it was compiled with"});
  put(impl_->program.persistents[number], value, impl_->state.persistents[number]);
}

void Session::measure_steps(std::string_view entry, bool on) { impl_->get(entry).measure(on); }
std::vector<StepTime> Session::step_times(std::string_view entry) const { return impl_->get(entry).step_times(); }

MemoryReport Session::memory(std::string_view entry) const {
  MemoryReport report = impl_->get(entry).memory();
  report.persistent = checked_cast<std::int64_t>(impl_->state.persistent_memory.size(), "the weights");
  return report;
}

}  // namespace hone
