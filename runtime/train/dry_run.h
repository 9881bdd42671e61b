// A run that is tried out: everything is done once, and nothing is left of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/recipe.h"
#include "runtime/train/replicas.h"

namespace hone {

/// Begun before the step that is tried, finished after it. Called by all processes of a run alike.
class DryRun {
 public:
  /// Keeps what the replicas hold in a folder of its own, which is made in `folder`, or in the first one above that is there. Throws kFileOpen, kFileWrite.
  DryRun(const std::string& folder, Replicas& replicas);
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  /// Saves and loads a checkpoint, saves the trained model, and gives the first replica back what it held in the beginning. Throws what these throw.
  void finish(const Recipe& recipe, std::span<const std::byte> onnx_model, std::int64_t steps);

  static constexpr const char* kDone = "Dry run: one step, one evaluation, one save and one resume went well; nothing is left of them";

 private:
  struct Folder {
    std::string path;
    /// Takes it away.
    ~Folder();
  };
  static std::string made_in(std::string folder, int process);

  Replicas& replicas_;
  Folder scratch_;
};

}  // namespace hone
