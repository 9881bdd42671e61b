// How long each step of a plan takes: what a session measures when it is asked to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone {

/// One step of an entry, or of the body of a loop or branch, over all runs since measuring began.
struct StepTime {
  enum class Kind : std::uint8_t { kKernel, kLibrary, kHost, kCopy, kRegion };
  Kind kind = Kind::kKernel;
  std::string what;    ///< name_of() the step (runtime/plan/step_name.h)
  std::string origin;  ///< plan::Step::origin
  std::vector<std::string> nodes;  ///< plan::Step::nodes
  std::int64_t runs = 0;
  double seconds = 0;
  double inner_seconds = 0;  ///< of a region: those of the steps of its bodies, which are listed, too
  double flops = 0, bytes = 0;  ///< of all runs: plan::Step's, for the sizes of the last run
};

}  // namespace hone
