// Training runs of PyTorch, transformers and Keras that were recorded on real exports (../shared/models): whatever lies there is a test.
#pragma once

#include <string>
#include <vector>

#include "passes/choice.h"
#include "runtime/library/arena.h"
#include "runtime/session.h"
#include "runtime/train/replicas.h"
#include "tests/support/temp_folder.h"

namespace hone::test {

enum class Recorded {
  kSmall,   ///< runs of models of few nodes: compiled and trained in a second
  kRuns,    ///< all runs
  kModels,  ///< all models, those too whose training was not recorded
};

/// Names of the folders that hold them, sorted; one name, of no folder, where there are none, so that a test can say so.
std::vector<std::string> recorded(Recorded kind);

/// Is there a model of this name? Else the test is to be skipped with kNotRecorded.
bool is_recorded(const std::string& name);
inline constexpr const char* kNotRecorded = "no recorded training runs beside the repository (../shared/models)";

/// Writes the model as it was before training (model.onnx), and the recipe that golden.json describes, in its framework's convention (train.toml).
void write_recorded(const TempFolder& folder, const std::string& name);

/// What a recorded run is trained with.
struct Setting {
  int threads = 1;
  PassChoice passes = {};
  /// A ReLU's argument within rounding of zero lets a correct run leave the recorded one for good, as torch_fresh_init's does at step 33 (-6.0e-7 in one
  /// order of sums, +1.9e-7 in another). So many runs may: the next starts from weights that are moved in their last place, and a wrong plan fails them all.
  int tries = 1;
  ReplicaOptions replicas = {};  ///< the batches are split among them
  std::string precision = "f32";  ///< train.precision
  std::vector<std::string> keep_f32 = {};
  std::string target = "cpu";  ///< what it is compiled for, and the device that it runs on
  double moved = 0;                ///< begins with trained weights that are moved by this share of their values, up and down in turn
  bool sync_batch_norm = false;  ///< without it, replicas see other batch statistics than the recorded run
  std::int64_t memory_limit = 0;  ///< bytes, at the recorded batch and its other sizes, which are fixed for it; 0: none
};

/// Compiles the model and trains it on the recorded batches. Holds the losses of all steps and of a smaller batch at the end, the first gradients' norms,
/// outputs before and after training and the norms of the trained weights against the framework's, within what float rounding alone did there (golden.json:
/// spread).
void expect_trains_as_recorded(const std::string& name, const Setting& setting);

/// The mean loss of each recorded batch before its step; nothing is held against it.
std::vector<double> losses_of_training(const std::string& name, const Setting& setting);
/// Trains as well, without holding it against anything: the bytes of all weights and states, in the plan's order.
std::vector<std::byte> trained_weights(const std::string& name, const Setting& setting);

/// What an entry point of a compiled model takes for the first recorded batch, and what the compiler says of it.
struct RecordedMemory {
  std::string entry;
  MemoryReport run;
  ArenaSize compiler;
};
std::vector<RecordedMemory> memory_of_recorded(const std::string& name, const Setting& setting = {});

}  // namespace hone::test
