#include "runtime/train/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/diag.h"

namespace hone {

namespace {

/// How many shards each replica has.
int checked_shards(const plan::Plan& plan, int shards, int replicas) {
  if (shards == 0) return 0;
  const auto refuse = [&](std::string what, std::string way_out) { throw Error(Code::kUsage, fmt::format("{} shards and {} replicas: {}", shards, replicas, what), {}, {std::move(way_out)}); };
  if (shards < replicas or shards % replicas != 0) refuse("every replica must have the same number of shards", fmt::format("take a multiple of {}", replicas));
  const int each = shards / replicas;
  if (replicas > 1 and not std::has_single_bit(static_cast<unsigned>(each)))
    refuse(fmt::format("each would have {}, whose sum is no part of the sum of all of them", each), "a replica must have one, two, four, eight ... shards, unless it has them all");
  for (const plan::Program& program : plan.programs)
    if (program.find(plan::kTrainStep) != nullptr and program.find(plan::kShardStep) == nullptr)
      throw Error(Code::kPlanEntry, "the plan has no step for a shard", {},
                  {"gradients that are accumulated over batches, and batch normalization over all replicas (model.sync_batch_norm), cannot be cut into shards: compile it without, or leave --shards out"});
  return each;
}

}  // namespace

Replicas::Replicas(const plan::Plan& plan, ReplicaOptions replicas, SessionOptions options) : processes_(replicas.processes), threads_(std::max(replicas.local, 1)) {
  if (replicas.local < 1 or replicas.shards < 0)
    throw Error(Code::kUsage, fmt::format("{} replicas and {} shards are asked for", replicas.local, replicas.shards), {}, {"one replica or more, and 0 shards or more"});
  if (replicas.local > 1 and processes() > 1)
    throw Error(Code::kUsage, fmt::format("{} processes of {} replicas each", processes(), replicas.local), {}, {"a process has one replica: start more processes instead"});
  shards_each_ = checked_shards(plan, replicas.shards, replicas.local * processes());
  const int threads = options.threads;
  for (int i = 0; i < replicas.local; ++i) {
    options.communicator = communicator(i);
    options.shards = shards_each_;
    if (replicas.shards > 0) options.threads = std::max(1, threads / replicas.shards);
    else if (replicas.local > 1) options.threads = std::max(1, Session::thread_count(threads) / replicas.local);
    sessions_.emplace_back(plan, options);
  }
}

Communicator* Replicas::communicator(int local) {
  if (processes() > 1) return processes_;
  return threads_.size() > 1 ? &threads_.of(local) : nullptr;
}

void Replicas::fail(int local, const char* why) noexcept {
  if (Communicator* all = communicator(local)) all->fail(why);
}

void Replicas::share_weights() {
  Session& first = session();
  for (const plan::Persistent& persistent : first.program().persistents) {
    if (persistent.role == plan::Persistent::Role::kConstant) continue;
    const Tensor own = first.read(persistent.name);
    const Tensor value = processes() == 1 ? own : Tensor::make(own.dtype(), own.shape(), [&](std::span<std::byte> bytes) {
      std::ranges::copy(own.bytes(), bytes.begin());
      const ExchangedTensor tensor = {own.dtype(), own.element_count(), bytes.data()};
      processes_->broadcast({&tensor, 1}, 0);
    });
    if (process() != 0) first.write(persistent.name, value);
    for (int i = 1; i < local(); ++i) session(i).write(persistent.name, value);
  }
}

}  // namespace hone
