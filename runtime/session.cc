#include "runtime/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "base/alignment.h"
#include "base/check.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"
#include "runtime/device/cpu.h"
#include "runtime/device/drivers.h"
#include "runtime/device/shared_exchange.h"
#include "runtime/executor.h"
#include "runtime/library/rows.h"
#include "runtime/not_finite.h"
#include "runtime/plan/adapters.h"
#include "runtime/plan/metadata.h"

namespace hone {
namespace {

std::vector<std::string> targets_of(const plan::Plan& plan) {
  std::vector<std::string> targets;
  for (const plan::Program& program : plan.programs) targets.push_back(program.target);
  return targets;
}

const plan::Program& program_for(const plan::Plan& plan, std::string_view target) {
  for (const plan::Program& program : plan.programs)
    if (program.target == target) return program;
  const std::vector<std::string> targets = targets_of(plan);
  throw Error(Code::kPlanMismatch, fmt::format("the plan has no program for {}, only for {}", target, targets.empty() ? "nothing" : printable(join(targets, ", "))), {},
              {fmt::format("compile the model with --target {}", target == "cpu" ? "cpu" : fmt::format("cpu,{}", target))});
}

Held held_of(const plan::Persistent& persistent, bool in_parts, const HostState& state) {
  if (not in_parts) return {0, persistent.initial.byte_count()};
  const RangePiece own = piece_of(persistent.initial.element_count(), state.replicas, state.replica);
  const std::size_t element = size_of(persistent.initial.dtype());
  return {static_cast<std::size_t>(own.begin) * element, static_cast<std::size_t>(own.end) * element};
}

/// Puts what is held of a value where it lies; `device`: whose memory that is.
void put(const plan::Persistent& persistent, const Tensor& value, Held held, std::byte* place, DeviceWork* device) {
  if (held.size() == 0) return;
  if (device != nullptr) {
    if (persistent.panels) throw plan::unsound_plan(fmt::format("{} lies in panels, on a device", quoted(persistent.name)));
    return device->write(place, value.bytes().data() + held.begin, held.size());
  }
  if (not persistent.panels) return void(std::memcpy(place, value.bytes().data() + held.begin, held.size()));
  if (held.size() == value.byte_count()) return plan::copy_to_panels(value, *persistent.panels, place);
  std::vector<std::byte> whole(value.byte_count());
  plan::copy_to_panels(value, *persistent.panels, whole.data());
  std::memcpy(place, whole.data() + held.begin, held.size());
}

/// Where all of something would begin of which a part lies at `place`: kernels count from there.
std::byte* origin_of(std::byte* place, Held held) { return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(place) - held.begin); }
std::byte* place_of(std::byte* origin, Held held) { return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(origin) + held.begin); }

/// Places what is held of the persistents one after the other, copies their initial contents, and lets go of these: zeros of the same type stand for them. What is not finite is kept:
/// training has not made it so (weight_gone()).
void initialize_persistents(plan::Program& program, HostState& state) {
  std::vector<std::size_t> offsets;
  std::size_t total = 0;
  for (const Held& each : state.held) {
    const std::size_t lead = each.begin % kTensorAlignment;  // all of it would begin at an aligned address
    offsets.push_back(checked_add(total, lead, "the weights"));
    total = round_up(checked_add(offsets.back(), each.size(), "the weights"), kTensorAlignment, "the weights");
  }
  state.persistent_memory = WorkMemory(total, "the memory for weights and optimizer state", state.device.get());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    std::byte* const place = state.persistent_memory.data() + offsets[i];
    state.persistents.push_back(origin_of(place, state.held[i]));
    Tensor& initial = program.persistents[i].initial;
    put(program.persistents[i], initial, state.held[i], place, state.device.get());
    if (not plan::is_of_model(program.persistents[i]) or are_finite(TensorView(initial))) initial = Tensor::zeros(initial.dtype(), initial.shape());
  }
}

/// Does the entry, or a body in it, touch what is in parts?
bool touches_parts(const plan::Program& program, const plan::Entry& entry) {
  const auto in_parts = [&](const plan::Buffer& buffer) { return buffer.storage == plan::Buffer::Storage::kPersistent and program.persistents[buffer.index].in_parts; };
  if (std::ranges::any_of(entry.buffers, in_parts)) return true;
  for (const plan::Step& step : entry.steps)
    if (const auto* region = std::get_if<plan::RegionStep>(&step.what))
      for (const plan::Entry& body : region->bodies)
        if (touches_parts(program, body)) return true;  // plan::check limits the depth
  return false;
}

void count_calls(std::span<const plan::Step> steps, std::map<std::string, std::size_t>& calls) {
  for (const plan::Step& step : steps) {
    if (const auto* library = std::get_if<plan::LibraryStep>(&step.what)) ++calls[library->row];
    else if (const auto* region = std::get_if<plan::RegionStep>(&step.what); region != nullptr and region->kind == plan::RegionStep::Kind::kCall) ++calls[region->row];
    else if (region != nullptr)
      for (const plan::Entry& body : region->bodies) count_calls(body.steps, calls);  // plan::check limits the depth
  }
}

/// Of those that the program would call, in its longest entry: what is missing, and what that means.
std::vector<std::string> libraries_left_out(const plan::Program& program, const Device& device) {
  std::map<std::string, std::size_t> most;
  for (const plan::Entry& entry : program.entries) {
    std::map<std::string, std::size_t> calls;
    count_calls(entry.steps, calls);
    for (const auto& [row, count] : calls) most[row] = std::max(most[row], count);
  }
  std::map<std::string, std::pair<std::string, std::size_t>> missing;  // by library: why, and how many of its calls
  for (const auto& [name, count] : most) {
    const LibraryRow& row = *find_library_row(name);  // check_steps
    std::string why = device.why_no_library(row);
    if (why.empty()) continue;
    auto& [reason, calls] = missing[std::string(row.device_library)];
    reason = std::move(why);
    calls += count;
  }
  std::vector<std::string> notes;
  for (const auto& [library, what] : missing)
    notes.push_back(fmt::format("{} calls no {}: {}; {} of its calls a step are done by the plan's own kernels, which are slower", device.name(), library, what.first, what.second));
  return notes;
}

void check_replica(const SessionOptions& options) {
  if (options.shards < 0) throw Error(Code::kUsage, fmt::format("a session is to collect {} shards", options.shards), {}, {"SessionOptions::shards is 0 or more; Trainer sets it, from ReplicaOptions::shards"});
  if (options.shard_optimizer and options.communicator == nullptr)
    throw Error(Code::kUsage, "a session is to share the optimizer's work, and has no communicator to others", {}, {"give SessionOptions::communicator, or leave shard_optimizer out"});
}

}  // namespace

struct Session::Impl {
  plan::Program program;
  HostState state;
  std::vector<std::unique_ptr<Executor>> executors;
  const Executor* last = nullptr;  // whose results can be read
  const bool shares_optimizer;
  Communicator* const communicator;
  std::vector<std::string> notes;
  std::map<std::size_t, Tensor> wholes;   // of states that are held in parts, until a step updates them: all of them
  std::atomic_flag is_running;

  /// Two runs at once would have one arena.
  class OneRun {
   public:
    explicit OneRun(Impl& impl) : is_running_(impl.is_running) {
      if (is_running_.test_and_set(std::memory_order_acquire))
        throw Error(Code::kUsage, "the session is in a run of another thread", {}, {"a session, and a trainer, is for one thread at a time: make one for each thread, of the same plan, or let a mutex guard the runs and what reads their results"});
    }
    ~OneRun() { is_running_.clear(std::memory_order_release); }
    OneRun(const OneRun&) = delete;
    OneRun& operator=(const OneRun&) = delete;

   private:
    std::atomic_flag& is_running_;
  };
  OneRun one_run() { return OneRun(*this); }

  explicit Impl(const SessionOptions& options)
      : state{.team = Team(thread_count(options.threads)), .device = nullptr, .code = {}, .kernels = {}, .persistent_memory = {}, .persistents = {}, .held = {}, .arena = {}, .exchanges = Exchanges(options.communicator)},
        shares_optimizer(options.shard_optimizer),
        communicator(options.communicator) {
    if (options.communicator == nullptr) return;
    state.replica = options.communicator->rank();
    state.replicas = options.communicator->size();
  }

  bool holds_part(std::size_t number) const { return shares_optimizer and program.persistents[number].in_parts; }
  std::byte* place(std::size_t number) const { return place_of(state.persistents[number], state.held[number]); }
  /// What lies in memory of a persistent. `copy` keeps it, where that is not the host's.
  std::span<const std::byte> lies(std::size_t number, std::vector<std::byte>& copy) const {
    if (state.device == nullptr) return {place(number), state.held[number].size()};
    copy = state.device->read(place(number), state.held[number].size());
    return copy;
  }
  Tensor plain(std::size_t number, const std::byte* whole) const {
    const plan::Persistent& persistent = program.persistents[number];
    const Tensor& like = persistent.initial;
    if (persistent.panels) return plan::from_panels(whole, like.dtype(), like.shape(), *persistent.panels);
    return Tensor::copy(like.dtype(), like.shape(), {whole, like.byte_count()});
  }

  /// A session that shares the optimizer's work holds too little for entries that update everything.
  void begin_entry(const plan::Entry& entry) {
    if (not shares_optimizer or not touches_parts(program, entry)) return;
    if (not plan::is_sharded(entry.name))
      throw Error(Code::kPlanEntry, fmt::format("{} updates all of the optimizer's states, and this replica holds a part of them", entry.name), {},
                  {fmt::format("run {}, or leave shard_optimizer out", plan::sharded_entry(plan::replica_entry(entry.name)))});
    wholes.clear();
  }

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
                {did_you_mean(entry, names), fmt::format("it has {}", names.empty() ? "none" : printable(join(names, ", "))), "a plan compiled without a recipe can predict, not train"});
  }

  TensorView result(std::string_view name) const {
    if (last == nullptr) throw Error(Code::kDataName, fmt::format("there is no result {}: no run has finished yet, or the last one failed", quoted(name)), {}, {"run an entry first"});
    const plan::Entry& entry = last->entry();
    std::vector<std::string> names;
    for (std::size_t i = 0; i < entry.results.size(); ++i) {
      if (entry.results[i].name == name) return last->result(i);
      names.push_back(entry.results[i].name);
    }
    throw Error(Code::kDataName, fmt::format("{} has no result {}", entry.name, quoted(name)), {},
                {fmt::format("it has {}", names.empty() ? "none" : printable(join(names, ", ")))});
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
  const std::optional<ChosenDevice> device = choose_device(options.device, targets_of(plan));
  check_replica(options);
  plan::check(plan);
  const plan::Program& program = program_for(plan, device ? device->driver->name : "cpu");
  impl_ = std::make_unique<Impl>(options);
  impl_->state.collected = Collected(static_cast<std::size_t>(options.shards), program.find(plan::kAccumulateStep) != nullptr ? Collected::Over::kBatches : Collected::Over::kOneBatch);
  if (device) {
    impl_->state.device = std::make_unique<DeviceWork>(device->driver->open(device->number));
    impl_->state.device->device().limit_memory(options.memory_limit);
    impl_->state.device->device().load(program);
    if (not options.deterministic)
      if (std::string note = impl_->state.device->device().choose_by_timing(options.choices_file); not note.empty()) impl_->notes.push_back(std::move(note));
  } else {
    impl_->state.code = load_code(program);
  }
  impl_->program = {.target = program.target, .code = {}, .persistents = program.persistents, .entries = program.entries};  // the code is loaded now
  impl_->state.kernels = check_steps(impl_->program, impl_->state.code, device ? &impl_->state.device->device() : nullptr);
  if (device) std::ranges::move(libraries_left_out(impl_->program, impl_->state.device->device()), std::back_inserter(impl_->notes));
  for (std::size_t i = 0; i < impl_->program.persistents.size(); ++i) impl_->state.held.push_back(held_of(impl_->program.persistents[i], impl_->holds_part(i), impl_->state));
  initialize_persistents(impl_->program, impl_->state);
  for (const plan::Entry& entry : impl_->program.entries) impl_->executors.push_back(std::make_unique<Executor>(entry, impl_->state, &impl_->state.arena));
}

namespace {

/// Of one replica, for all to see.
struct Hardware {
  std::int32_t can_exchange = 0;
  std::int32_t most_summed_terms = 0;
  std::array<std::int32_t, 2> process = {};  ///< no two have the same
  std::array<std::int32_t, 15> name = {};  ///< the first characters of Device::hardware()
};

std::array<std::int32_t, 2> this_process() {
  static const std::array<std::int32_t, 2> drawn = [] {
    std::random_device random;
    return std::array{static_cast<std::int32_t>(random()), static_cast<std::int32_t>(random())};
  }();
  return drawn;
}

/// Everybody's, by rank.
std::vector<Hardware> hardware_of_all(const Hardware& own, Communicator& replicas) {
  std::vector<Hardware> all(static_cast<std::size_t>(replicas.size()));
  all[static_cast<std::size_t>(replicas.rank())] = own;  // the sum of one and zeros
  const ExchangedTensor tensor = {DType::kI32, static_cast<std::int64_t>(all.size() * sizeof(Hardware) / sizeof(std::int32_t)), all.data()};
  replicas.all_reduce({&tensor, 1});
  return all;
}

}  // namespace

void Session::connect_devices() {
  Communicator* const replicas = impl_->communicator;
  if (replicas == nullptr or replicas->size() == 1) return;
  DeviceWork* const device = impl_->state.device.get();
  Hardware own;
  std::string why = device == nullptr ? "" : device->device().why_no_exchange();
  if (device != nullptr) {
    own.can_exchange = why.empty() ? 1 : 0;
    own.most_summed_terms = device->device().most_summed_terms();
    own.process = this_process();
    const std::string name = device->device().hardware();
    std::memcpy(own.name.data(), name.data(), std::min(name.size(), sizeof(own.name)));
  }
  const std::vector<Hardware> all = hardware_of_all(own, *replicas);
  std::set<std::array<std::int32_t, 15>> different;
  for (const Hardware& each : all) different.insert(each.name);
  const bool all_can = std::ranges::all_of(all, [](const Hardware& each) { return each.can_exchange == 1; });
  if (all_can and different.size() == all.size()) {
    auto communicator = device->device().connect(*replicas);
    HONE_CHECK(communicator != nullptr, "a device that can exchange has no way to");
    return device->connect(std::move(communicator));
  }
  if (device == nullptr) return;
  const auto shares_it = [&](const Hardware& each) { return each.name == own.name and each.process == own.process and each.most_summed_terms >= replicas->size(); };
  if (std::ranges::all_of(all, shares_it)) {
    impl_->notes.push_back("several replicas share a device: it adds up their gradients in its memory");
    return device->connect(std::make_unique<SharedExchange>(device->device(), *replicas));
  }
  if (why.empty()) why = all_can ? "several replicas share a device" : "another replica's cannot";
  impl_->notes.push_back(fmt::format("gradients go through the host's memory, not from device to device: {}", why));
}

Session::OwnImpl& Session::OwnImpl::operator=(std::unique_ptr<Impl> impl) noexcept {
  impl_ = std::move(impl);
  return *this;
}

Session::Impl* Session::OwnImpl::operator->() const {
  if (impl_ == nullptr) throw Error(Code::kUsage, "a session is used that was moved from", {}, {"use the one that it was moved to"});
  return impl_.get();
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const plan::Program& Session::program() const { return impl_->program; }
int Session::thread_count(int asked) {
  if (asked < 0 or asked > limits::kThreads)
    throw Error(Code::kUsage, fmt::format("{} threads are asked for", asked), {}, {fmt::format("1 to {}; 0 takes as many as there are cores, which is {} here", limits::kThreads, usable_cores())});
  return asked == 0 ? usable_cores() : asked;
}

const std::vector<std::string>& Session::notes() const { return impl_->notes; }
std::optional<std::uint64_t> Session::free_device_memory() const { return impl_->state.device == nullptr ? std::nullopt : std::optional(impl_->state.device->device().available_memory()); }

Device* Session::device() const { return impl_->state.device == nullptr ? nullptr : &impl_->state.device->device(); }
void Session::feed_ahead(std::span<const std::pair<std::string, TensorView>> feeds) {
  if (impl_->state.device != nullptr) impl_->state.device->feed_ahead(feeds);
}

int Session::threads() const { return impl_->state.team.threads(); }
bool Session::has_entry(std::string_view entry) const { return impl_->find(entry) != nullptr; }
const plan::Entry& Session::entry(std::string_view entry) const { return impl_->get(entry).entry(); }

void Session::run(std::string_view entry, std::span<const std::pair<std::string, TensorView>> feeds) {
  const auto one = impl_->one_run();
  Executor& executor = impl_->get(entry);
  impl_->last = nullptr;  // a run that fails leaves nothing to read
  impl_->begin_entry(executor.entry());
  try {
    executor.run(feeds);
  } catch (...) {
    impl_->state.collected.clear();  // which is of a step that will never be whole
    throw;
  }
  if (entry == plan::kShardStep) impl_->state.collected.end_shard();
  else impl_->state.collected.end_batch();
  impl_->last = &executor;
}

NotFiniteReport Session::find_not_finite(std::string_view entry, std::span<const std::pair<std::string, TensorView>> feeds) {
  const auto one = impl_->one_run();
  Executor& executor = impl_->get(entry);
  impl_->last = nullptr;
  HONE_CHECK(not impl_->shares_optimizer or not touches_parts(impl_->program, executor.entry()), "states that are in parts are to be looked at whole");
  NotFiniteFinder finder;
  const auto note = [](std::vector<ValueRange>& list, const std::string& name, const TensorView& tensor) {
    auto range = range_of(name, tensor);
    if (range and not range->is_finite()) list.push_back(std::move(*range));
  };
  for (const auto& [name, tensor] : feeds) note(finder.report.feeds, name, tensor);
  for (const plan::Persistent& persistent : impl_->program.persistents)
    if (persistent.role != plan::Persistent::Role::kConstant and not holds_part(persistent.name)) note(finder.report.weights, persistent.name, read(persistent.name));
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
  const auto not_within_one = impl_->one_run();
  return impl_->result(name);
}

Tensor Session::result_tensor(std::string_view name) const {
  const auto not_within_one = impl_->one_run();
  return copy_of(impl_->result(name));
}

Tensor Session::read(std::string_view persistent) const {
  const std::size_t number = impl_->persistent_number(persistent);
  std::vector<std::byte> copy;
  if (not impl_->holds_part(number)) return impl_->plain(number, impl_->lies(number, copy).data());
  if (const auto whole = impl_->wholes.find(number); whole != impl_->wholes.end()) return whole->second;
  throw Error(Code::kPlanEntry, fmt::format("{} is held in parts by {} replicas, of which this is one", quoted(persistent), impl_->state.replicas), {},
              {"a checkpoint has all of it; or train without sharing the optimizer's work"});
}

bool Session::holds_part(std::string_view state) const { return impl_->holds_part(impl_->persistent_number(state)); }
bool Session::knows_whole(std::string_view state) const { return impl_->wholes.contains(impl_->persistent_number(state)); }

void Session::copy_part(std::string_view state, std::span<std::byte> whole) const {
  const std::size_t number = impl_->persistent_number(state);
  HONE_CHECK(whole.size() == impl_->program.persistents[number].initial.byte_count(), "a state of another size");
  std::vector<std::byte> copy;
  std::ranges::copy(impl_->lies(number, copy), whole.begin() + static_cast<std::ptrdiff_t>(impl_->state.held[number].begin));
}

void Session::keep_whole(std::string_view state, std::span<const std::byte> whole) {
  const std::size_t number = impl_->persistent_number(state);
  HONE_CHECK(impl_->holds_part(number) and whole.size() == impl_->program.persistents[number].initial.byte_count(), "a state of another size");
  impl_->wholes.insert_or_assign(number, impl_->plain(number, whole.data()));
}

void Session::forget_whole(std::string_view state) { impl_->wholes.erase(impl_->persistent_number(state)); }

std::vector<std::string> Session::states_in_parts() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < impl_->program.persistents.size(); ++i)
    if (impl_->holds_part(i)) names.push_back(impl_->program.persistents[i].name);
  return names;
}

void Session::write(std::string_view persistent, const Tensor& value) {
  const std::size_t number = impl_->persistent_number(persistent);
  const Tensor& like = impl_->program.persistents[number].initial;
  if (value.dtype() != like.dtype() or value.shape() != like.shape())
    throw Error(Code::kPlanMismatch, fmt::format("{} is {}{}, but {}{} is given", quoted(persistent), to_string(like.dtype()), shape_text(like.shape()),
                                                 to_string(value.dtype()), shape_text(value.shape())), {},
                {"a weight keeps the type and shape that it was compiled with"});
  put(impl_->program.persistents[number], value, impl_->state.held[number], impl_->place(number), impl_->state.device.get());
  if (impl_->holds_part(number)) impl_->wholes.insert_or_assign(number, value);
}

void Session::measure_steps(std::string_view entry, bool on) { impl_->get(entry).measure(on); }
std::vector<StepTime> Session::step_times(std::string_view entry) const { return impl_->get(entry).step_times(); }

void Session::trace(Trace* trace, const std::string& process) {
  HostState& state = impl_->state;
  state.tracks.clear();
  state.exchanges.trace(nullptr);
  if (state.device != nullptr) state.device->trace(trace, process);
  if (trace == nullptr) return;
  trace->shows(impl_->program);
  if (state.device != nullptr) state.tracks.push_back(&trace->add_track(process, "host"));
  for (int i = 0; i < state.team.threads() and state.device == nullptr; ++i) state.tracks.push_back(&trace->add_track(process, i == 0 ? "thread 0, which calls libraries" : fmt::format("thread {}", i)));
  if (state.exchanges.has_thread()) state.exchanges.trace(&trace->add_track(process, "exchanges"));
}

MemoryReport Session::memory(std::string_view entry) const {
  MemoryReport report = impl_->get(entry).memory();
  report.persistent = checked_cast<std::int64_t>(impl_->state.persistent_memory.size(), "the weights");
  return report;
}

}  // namespace hone
