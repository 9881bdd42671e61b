#include "runtime/train/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <thread>

#include "base/diag.h"
#include "runtime/collective/tree_sum.h"
#include "runtime/train/export_onnx.h"

namespace hone {

namespace {

/// Are sums of gradients rounded on their way between replicas?
bool rounds_sums(const plan::Plan& plan) {
  for (const plan::Program& program : plan.programs) {
    const plan::Entry* shard = program.find(plan::kShardStep);
    for (const plan::Step& step : shard == nullptr ? std::vector<plan::Step>() : shard->steps)
      if (const auto* exchange = std::get_if<plan::AllReduceStep>(&step.what))
        if (std::ranges::any_of(exchange->buffers, [&](std::uint32_t buffer) { return shard->buffers[buffer].dtype == DType::kBF16; })) return true;
  }
  return false;
}

bool has_in_all(const plan::Plan& plan, const std::string& entry) {
  return std::ranges::all_of(plan.programs, [&](const plan::Program& program) { return program.find(plan::kTrainStep) == nullptr or program.find(entry) != nullptr; });
}

/// A plan whose step exchanges nothing would train each replica for itself.
void require_exchanges(const plan::Plan& plan, const ReplicaOptions& options, int replicas) {
  if ((replicas == 1 and options.shards == 0 and not options.shard_optimizer) or has_in_all(plan, plan::replica_entry(plan::kTrainStep))) return;
  throw Error(Code::kPlanEntry, "the plan has no step for several replicas or shards: a model that says itself how it is trained exchanges nothing", {},
              {"train it on one device, or compile it with a recipe that has a loss and an optimizer"});
}

constexpr int kMostShards = 65'536;  // each takes a step of its own, and some memory

/// How many shards each of all replicas has; nothing if there are none, or each replica is one.
std::vector<int> checked_shards(const plan::Plan& plan, int shards, int replicas) {
  if (shards == 0) return {};
  const auto refuse = [&](std::string what, std::string way_out) { throw Error(Code::kUsage, fmt::format("{} shards and {} replicas: {}", shards, replicas, what), {}, {std::move(way_out)}); };
  if (shards > kMostShards) refuse(fmt::format("at most {} shards are taken", kMostShards), "as many as there may ever be replicas are enough: --shards 64, for one");
  const std::optional<std::vector<int>> each = cut_tree(shards, replicas);
  if (not each)
    refuse("replicas must have shards whose sums are parts of the sum of all of them", fmt::format("take {} shards, or another power of two from there on", std::bit_ceil(static_cast<unsigned>(replicas))));
  if (not has_in_all(plan, plan::kShardStep)) {
    if (shards == replicas) return {};
    throw Error(Code::kPlanEntry, "the plan has no step for a shard", {},
                {fmt::format("batch normalization over all replicas (model.sync_batch_norm) cannot be cut into shards: compile it without, take one shard for each replica (--shards {}), or leave --shards out", replicas)});
  }
  if (replicas > 1 and shards > replicas and rounds_sums(plan))
    refuse("with train.exchange_precision = \"bf16\" a replica's sum of several shards would be rounded on its way to the others, so bits would depend on the number of replicas",
           fmt::format("take one shard for each replica (--shards {}), or compile with train.exchange_precision = \"f32\"", replicas));
  return *each;
}

/// How many replicas share the optimizer's work.
int checked_shares(const plan::Plan& plan, bool shared, int replicas) {
  if (not shared) return 1;
  if (replicas == 1)
    throw Error(Code::kUsage, "--shard-optimizer: there is one replica, which has nobody to share the optimizer's work with", {},
                {"ask for several (--virtual 2, mpirun -n 2, ReplicaOptions::local), or leave it out"});
  if (not has_in_all(plan, plan::sharded_entry(plan::replica_entry(plan::kTrainStep))))
    throw Error(Code::kPlanEntry, "the plan has no step in which replicas share the optimizer's work", {}, {"compile the model again with this version of Hone, or leave --shard-optimizer out"});
  return replicas;
}

}  // namespace

Replicas::Replicas(const plan::Plan& plan, ReplicaOptions replicas, SessionOptions options) : processes_(replicas.processes), threads_(std::max(replicas.local, 1)), local_(replicas.local) {
  if (replicas.local < 1 or replicas.shards < 0)
    throw Error(Code::kUsage, fmt::format("{} replica{} and {} shards are asked for", replicas.local, replicas.local == 1 ? "" : "s", replicas.shards), {}, {"one replica or more, and 0 shards or more"});
  if (replicas.devices.size() > static_cast<std::size_t>(replicas.local))
    throw Error(Code::kUsage, fmt::format("{} devices are given to {} replica{}", replicas.devices.size(), replicas.local, replicas.local == 1 ? "" : "s"), {}, {"name as many devices as ReplicaOptions::local says, or fewer, which replicas then share"});
  if (replicas.local > 1 and processes() > 1) nested_ = std::make_unique<NestedCommunicators>(*processes_, replicas.local);
  const int all = replicas.local * processes();
  require_exchanges(plan, replicas, all);
  const std::vector<int> shards = checked_shards(plan, replicas.shards, all);
  in_shards_ = not shards.empty();
  first_part_.assign(1, 0);
  for (int i = 0; i < all; ++i) first_part_.push_back(first_part_.back() + (in_shards_ ? shards[static_cast<std::size_t>(i)] : 1));
  optimizer_shares_ = checked_shares(plan, replicas.shard_optimizer, all);
  const int threads = options.threads;
  for (int i = 0; i < replicas.local; ++i) {
    options.communicator = communicator(i);
    options.shards = in_shards_ ? parts_of(i) : 0;
    if (not replicas.devices.empty()) options.device = replicas.devices[static_cast<std::size_t>(i) * replicas.devices.size() / static_cast<std::size_t>(replicas.local)];
    options.shard_optimizer = optimizer_shares_ > 1;
    if (replicas.shards > 0) options.threads = std::max(1, threads / replicas.shards);
    else if (replicas.local > 1) options.threads = std::max(1, Session::thread_count(threads) / replicas.local);
    sessions_.emplace_back(plan, options);
  }
  check_model(plan.onnx_model, session().program());  // rather now than when it is written
  const bool has_devices = std::ranges::any_of(plan.programs, [](const plan::Program& program) { return program.target != "cpu"; });  // the same in all processes
  if (total() > 1 and has_devices) connect_devices();
}

/// All of them at once, each in a thread of its own.
void Replicas::connect_devices() {
  if (local() == 1) return session().connect_devices();
  std::vector<std::exception_ptr> failures(sessions_.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < sessions_.size(); ++i)
      threads.emplace_back([&, i] {
        try {
          sessions_[i].connect_devices();
        } catch (const std::exception& error) {
          failures[i] = std::current_exception();
          fail(static_cast<int>(i), error.what());
        }
      });
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

BatchPart Replicas::part_of(std::int64_t samples, std::int64_t at_a_time, int local, int part) const {
  const std::int64_t units = samples / at_a_time, all = parts(), number = first_part_of(local) + part;
  const auto begin = [&](std::int64_t at) { return (units / all * at + std::min(at, units % all)) * at_a_time; };
  return {.begin = begin(number), .end = begin(number + 1)};
}

BatchPart Replicas::part_here(std::int64_t samples, std::int64_t at_a_time) const {
  return {.begin = part_of(samples, at_a_time, 0, 0).begin, .end = part_of(samples, at_a_time, local() - 1, parts_of(local() - 1) - 1).end};
}

Communicator* Replicas::communicator(int local) {
  if (nested_ != nullptr) return &nested_->of(local);
  if (processes() > 1) return processes_;
  return threads_.size() > 1 ? &threads_.of(local) : nullptr;
}

void Replicas::fail(int local, const char* why) noexcept {
  if (Communicator* all = communicator(local)) all->fail(why);
}

void Replicas::renew() { threads_.renew(); }

void Replicas::share_weights() {
  Session& first = session();
  for (const plan::Persistent& persistent : first.program().persistents) {
    if (persistent.role == plan::Persistent::Role::kConstant or first.holds_part(persistent.name)) continue;
    const Tensor own = first.read(persistent.name);
    const Tensor value = processes() == 1 ? own : Tensor::make(own.dtype(), own.shape(), [&](std::span<std::byte> bytes) {
      std::ranges::copy(own.bytes(), bytes.begin());
      const ExchangedTensor tensor = {own.dtype(), own.element_count(), bytes.data()};
      processes_->broadcast({&tensor, 1}, 0);
    });
    if (process() != 0) first.write(persistent.name, value);
    for (int i = 1; i < local(); ++i) session(i).write(persistent.name, value);
  }
  share_states();
}

/// Of what is held in parts the first replica knows all where it was written there: from a checkpoint. Else each has its part already.
void Replicas::share_states() {
  const std::vector<std::string> states = session().states_in_parts();
  std::vector<std::int32_t> known;
  for (const std::string& state : states) known.push_back(session().knows_whole(state) ? 1 : 0);
  if (processes() > 1 and not known.empty()) {
    const ExchangedTensor flags = {DType::kI32, static_cast<std::int64_t>(known.size()), known.data()};
    processes_->broadcast({&flags, 1}, 0);
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (known[i] == 0) continue;
    const Tensor value = value_of_first(states[i]);
    for (Session& each : sessions_) {
      each.write(states[i], value);
      each.forget_whole(states[i]);
    }
  }
}

/// All of a state that the first replica of the first process knows.
Tensor Replicas::value_of_first(const std::string& state) {
  if (processes() == 1) return session().read(state);
  const auto& persistents = session().program().persistents;
  const Tensor& like = std::ranges::find(persistents, state, &plan::Persistent::name)->initial;
  return Tensor::make(like.dtype(), like.shape(), [&](std::span<std::byte> bytes) {
    if (process() == 0) std::ranges::copy(session().read(state).bytes(), bytes.begin());
    const ExchangedTensor tensor = {like.dtype(), like.element_count(), bytes.data()};
    processes_->broadcast({&tensor, 1}, 0);
  });
}

/// As it lies in memory.
std::vector<std::byte> Replicas::gathered_bytes(const plan::Persistent& persistent) {
  std::vector<std::byte> whole(persistent.initial.byte_count());
  for (const Session& each : sessions_) each.copy_part(persistent.name, whole);
  if (processes() > 1) {
    const ExchangedTensor tensor = {persistent.initial.dtype(), persistent.initial.element_count(), whole.data()};
    if (nested_ != nullptr) nested_->all_gather_of_process({&tensor, 1});
    else processes_->all_gather({&tensor, 1});
  }
  return whole;
}

Tensor Replicas::gathered(const std::string& state) {
  const auto& persistents = session().program().persistents;
  const bool knew = session().knows_whole(state);
  session().keep_whole(state, gathered_bytes(*std::ranges::find(persistents, state, &plan::Persistent::name)));
  Tensor value = session().read(state);
  if (not knew) session().forget_whole(state);
  return value;
}

void Replicas::gather_states(bool here, std::string_view ending) {
  for (const plan::Persistent& persistent : session().program().persistents) {
    if (not session().holds_part(persistent.name) or not persistent.name.ends_with(ending)) continue;
    const std::vector<std::byte> whole = gathered_bytes(persistent);
    if (here) session().keep_whole(persistent.name, whole);
  }
}

GatherOptions gather_for(Replicas& replicas) {
  Session& session = replicas.session();
  return {.ahead = session.device() != nullptr ? Ahead::kAlways : Ahead::kIfStreamed, .replicas = replicas.total(), .device = session.device(), .late = replicas.is_alone(), .threads = replicas.is_alone() ? session.threads() : 1};
}

}  // namespace hone
