// A small model, which several processes train: with dropout, shuffling, a schedule and validation, and with one weight that is not trained and can be found in a process's memory.
#pragma once

#include <string>
#include <vector>

#include "tests/collective/launch.h"
#include "tests/support/temp_folder.h"

namespace hone::test {

class TrainedModel {
 public:
  /// In `folder`: plan.hone, other.hone (with another learning rate), x.npy, y.npy (97 samples) and other.npy (other samples).
  TrainedModel();

  /// The command that trains into run folder NAME, and writes NAME.onnx. Batches of 16 over all ranks: 7 steps an epoch, a checkpoint at every fifth.
  static std::string command(const std::string& name, const std::string& flags, const std::string& plan = "plan.hone", const std::string& samples = "x.npy");
  /// The values of the weight that stays as it is.
  static const std::vector<float>& frozen_weight();

  TempFolder folder;
};

}  // namespace hone::test
