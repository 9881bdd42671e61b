// What is going to be trained, said before it begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace hone {

/// Bytes that training is planned to take, library scratch left out.
struct PlannedMemory {
  std::int64_t persistent = 0;  ///< weights, states, constants; of states in parts the largest part
  std::int64_t arena = 0;       ///< activations, gradients, temporaries
};
/// What a run calls. Among several replicas steps are others, which keep gradients until they are exchanged.
struct RunCalls {
  int replicas = 1;
  int shares = 1;          ///< that share the optimizer's work
  bool norms = false;      ///< of gradients, which are then whole
  bool evaluates = false;  ///< with batches of the same size
};
/// The entries that a replica of such a run calls, as far as the program has them: the step, that which adds gradients up, that which evaluates.
std::vector<const plan::Entry*> called_entries(const plan::Program& program, RunCalls calls);
/// Of one replica, for full batches of its own: what the entry takes that takes most. Nothing for a program that does not train, or where sizes are not known before the data are.
std::optional<PlannedMemory> planned_memory(const plan::Program& program, const std::string& batch_symbol, std::int64_t batch_size, RunCalls calls = {});

/// "4.81 MiB (611 KiB of weights and states, 4.21 MiB of activations and gradients)"
std::string planned_text(const PlannedMemory& memory);

struct SummaryOptions {
  std::string model_name;
  std::int64_t batch_size = 0;
  std::optional<PlannedMemory> planned;
  bool all_weights = false;     ///< or of a long list the first and the last
  int optimizer_shares = 1;     ///< replicas that share the optimizer's work
  int columns = 80;             ///< that the table may take; long names give way
};

/// Elements of the weights and running statistics of a model, adapters included.
struct ParameterCounts {
  std::int64_t trained = 0, others = 0;
};
ParameterCounts count_parameters(const plan::Program& program);

/// A table of the weights and running statistics with shape, number of elements, and whether they are trained; then totals: elements and bytes of all, trained
/// and others, bytes of what the optimizer keeps, what of that a replica holds that shares it and why not less, and the memory that is planned. No line end at the end.
std::string model_summary(const plan::Program& program, const SummaryOptions& options);

/// 52138 as "52,138".
std::string grouped(std::int64_t number);

}  // namespace hone
