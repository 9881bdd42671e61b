// How long each step of a plan takes: what a session measures when it is asked to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone {

namespace plan {
struct Step;
}

/// One step of an entry, or of the body of a loop or branch, over all runs since measuring began.
struct StepTime {
  enum class Kind : std::uint8_t { kKernel, kLibrary, kHost, kCopy, kRegion };
  Kind kind = Kind::kKernel;
  std::string what;    ///< the kernel's symbol, the library's row, the host function, "copy", "scan"
  std::string origin;  ///< plan::Step::origin
  std::int64_t runs = 0;
  double seconds = 0;
  double inner_seconds = 0;  ///< of a region: those of the steps of its bodies, which are listed, too
};

/// StepTime::what of a step.
std::string name_of(const plan::Step& step);

}  // namespace hone
