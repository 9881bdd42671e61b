// Checkpoints: everything that a training run needs to go on, in a folder that is there whole or not at all.
//
//   RUN/checkpoint-000500/model.safetensors      weights and running statistics, by their names in the ONNX model, and adapters
//                         optimizer.safetensors  every other state: moments, counters, random numbers' seed, averages of weights
//                         state.json             where the run is (train_state.h), with the recipe
//                         manifest.json          size and hash of each of these: written last
//
// All is written into a folder beside, synced, and renamed. A checkpoint counts only if its manifest fits its files.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "runtime/data/named_tensors.h"
#include "runtime/session.h"
#include "runtime/train/progress.h"
#include "runtime/train/state_reader.h"
#include "runtime/train/train_state.h"

namespace hone {

/// Writes the folder `path`; one of that name is replaced, and at no time is there neither. Throws kFileOpen, kFileWrite, and what the reader throws; then what was
/// there is there still.
void write_checkpoint(const std::string& path, const Session& session, const TrainState& state, const StateReader& reader = {});

/// Throws kCheckpoint for the folder of a run, naming its newest checkpoint, which was meant. Nothing for what is no such folder.
void refuse_run_folder(const std::string& path);

/// Has the folder what a checkpoint's has, its state or its manifest, sound or not? Others hold a model.safetensors, too.
bool is_checkpoint(const std::string& path);

/// Checks the manifest and every file against it. Throws kDataFormat (something is missing, or is not what was written), kFileOpen, kFileRead.
void check_checkpoint(const std::string& path);

/// Gives the session every weight and state of a sound checkpoint, and returns where the run was. Throws what check_checkpoint() throws, and kPlanMismatch, listing
/// everything that does not fit the plan; then nothing has changed.
TrainState load_checkpoint(const std::string& path, Session& session);

struct CheckpointOptions {
  std::int64_t keep = 3;   ///< the newest so many stay
  bool keep_best = false;  ///< and that of the best epoch
};

/// The checkpoints of one run folder.
class Checkpoints {
 public:
  /// The session stays alive. `run_dir` may not exist yet.
  Checkpoints(std::string run_dir, Session& session, CheckpointOptions options);

  /// The steps of the folders that are there, sound or not, newest first.
  std::vector<std::int64_t> steps() const;
  std::string path(std::int64_t step) const;

  enum class Older : std::uint8_t { kPruned, kAllStay };
  /// Writes one, then takes away those before it that need not be kept. Of weights that an update made infinite or NaN nothing is written or taken away, because no run could
  /// go on there: returns the name of the first, else "". Throws kFileOpen, kFileWrite.
  std::string save(const TrainState& state, Older older = Older::kPruned, const StateReader& reader = {});

  /// The weights of one that is there and sound, by name. Throws what check_checkpoint() throws.
  NamedTensors weights(std::int64_t step) const;

  /// How a run begins, which has the folder to itself from now on; what one that was killed left half-written is taken away: with restore(), if it is to go on, telling `progress` what was found and changed; afresh, where there is no checkpoint. Throws kUsage if it is not to
  /// go on and there are checkpoints, which a new run would mix with its own, and for a folder that another run is using, and what restore() and changes_since() throw.
  std::optional<TrainState> begin_or_resume(bool resume, const Recipe& recipe, const BatchSource& batches, Progress& progress);

  /// Loads the newest sound one. Unsound ones are passed over, each with a sentence in *notes. Nothing if there are none at all. Throws kCheckpoint if none of those
  /// that are there is sound, kPlanMismatch if it does not fit the plan, kUsage where another run has the folder.
  std::optional<TrainState> restore(std::vector<std::string>* notes);

 private:
  /// Has the folder to itself from now on.
  void enter();
  /// Step, epoch, batch, and whether the epoch was reported.
  using Position = std::array<std::int64_t, 4>;
  static Position position_of(const TrainState& state);

  std::string run_dir_;
  Session& session_;
  CheckpointOptions options_;
  std::optional<Position> on_disk_;  // of what was saved or restored last
  std::optional<FolderLock> lock_;
};

}  // namespace hone
