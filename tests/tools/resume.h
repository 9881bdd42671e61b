// A training run with everything in it that a resumed one could get wrong: dropout, shuffling, accumulated gradients, a schedule, validation.
#pragma once

#include <string>

#include "tests/support/tools/run_folders.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {

class ResumedRun {
 public:
  /// Trains once without a stop, 50 steps in 5 epochs, into the folder "whole", with a checkpoint at every step.
  ResumedRun();

  /// The command that trains into run folder `name`, and writes NAME.onnx.
  std::string command(const std::string& name) const;
  /// Does NAME.onnx hold the same bytes as the run without a stop?
  bool is_as_whole(const std::string& name) const { return folder.read(name + ".onnx") == folder.read("whole.onnx"); }

  static constexpr int kSteps = 50;
  TempFolder folder;
};

}  // namespace hone::test
