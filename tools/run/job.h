// What hone-run's commands share: their flags, and a plan made ready with its recipe and data.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/recipe.h"
#include "runtime/data/bound_arrays.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"
#include "runtime/train/means.h"
#include "runtime/train/progress.h"
#include "runtime/train/replicas.h"
#include "runtime/train/summary.h"

namespace hone {

/// What the command line says, for all commands.
struct Arguments {
  std::string plan, weights, out, run_dir, device = "auto", workload, simulate, trace;
  std::vector<std::string> train, valid, data, in, set, dim;
  std::string batch, memory_limit, choices;
  std::optional<std::int64_t> epochs, seed;
  std::int64_t steps = 0, limit = 0, log_every = 100, save_steps = 0, keep = 3, threads = 0, replicas = 0, virtual_devices = 0, shards = 0, check_every = 100;
  std::string collective_timeout = "60s";
  double seconds = 3, warm_up = 0.2, network = 1.25, latency = 20;
  double max_time = 0;  // seconds; 0: no limit
  bool no_shuffle = false, pre_batched = false, global_batch = false, quiet = false, verbose = false, json = false, dry_run = false, log_grad_norms = false, breakdown = false, roofline = false;
  bool resume = false, keep_best = false, log_histograms = false, shard_optimizer = false, memory_growth = false, deterministic = false;
};

/// A plan on its devices, with the weights that were asked for.
struct Job {
  /// `processes`: where several were started together, this one's way to the others, which outlives the job. Throws kUsage for more replicas than devices.
  explicit Job(const Arguments& arguments, Communicator* processes = nullptr);
  plan::Plan plan;  // without its programs
  Replicas replicas;
  Session& session;  // of the first replica
  std::unique_ptr<StepRunner> runner;

  /// What one process of a run may do that has several: files, progress and results are the first one's.
  bool is_first_process() const { return replicas.process() == 0; }
  /// Puts what the replicas of this process run on tracks of `trace`, which outlives the job.
  void trace_replicas(Trace& trace);
};

/// What a run of the command line's calls of the plan.
RunCalls calls_of(const Job& job, const Arguments& arguments);

/// Writes a finished trace.
/// Throws Error kUsage where what the command writes to is a file that it reads, apart from --weights: who trains on may put the new weights in place of the old ones; and where two of its files would be one.
void check_outputs(const Arguments& arguments, std::initializer_list<std::span<const DataSource>> sources);

void write_trace(const Trace& trace, const std::string& path);

/// Samples of a step over all replicas: the recipe's batch for each, or for all of them together with --global-batch; `fixed_batch` for each where the model has fixed it (else 0).
/// Throws kUsage for fewer than one a replica.
std::int64_t global_batch(const Job& job, const Recipe& recipe, const Arguments& arguments, std::int64_t fixed_batch);

/// Settles the batch of training steps before anything runs: with --batch auto it becomes the largest, up to `most`, that fits into --memory-limit, or into what its device has left, or most of what
/// the machine has; with a number, one that does not fit into --memory-limit or the device is refused, for a device unless --memory-growth leaves that to be seen. Throws Error kMemory, kUsage.
void settle_batch(Recipe& recipe, const Job& job, const Arguments& arguments, std::int64_t most);

/// The plan's recipe with what the command line changes. Throws kPlanEntry when the plan can only predict, kRecipeKey and kRecipeValue.
/// `kNumberOrAuto`: settle_batch() is asked later what "auto" means.
enum class BatchFlag : std::uint8_t { kNumber, kNumberOrAuto };
Recipe recipe_for(const plan::Plan& plan, const Arguments& arguments, BatchFlag flag = BatchFlag::kNumber);

/// An entry that computes a loss. Throws kPlanEntry for a plan that can only predict.
const plan::Entry& entry_with_loss(const Job& job, const char* name);

/// The arrays that `flag` names, bound to the entry. Throws what BoundArrays throws.
BoundArrays open_data(const Job& job, const Recipe& recipe, const plan::Entry& entry, const char* flag, const std::vector<DataSource>& sources, bool pre_batched);

/// What was done with the data on the way to the model.
void say_notes(Progress& progress, const BoundArrays& data);
/// A note where the last samples fill no batch of a model that takes so many at a time, and training and evaluation leave them out.
void say_left_out(Progress& progress, const BoundArrays& data);

}  // namespace hone
