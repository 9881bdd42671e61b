// A cuDNN whose descriptors keep what they are told, and whose plans convolve, or run a graph of operations, on the host by extents and strides. It recommends the engines that a test wants. Recurrent layers it
// computes as the host's rows do, from weights that lie in its space otherwise than anywhere else.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device/cudnn.h"

namespace hone::test {

struct FakeCudnn {
  struct Engine {
    std::vector<cudnn::Note> notes;
    std::int64_t workspace = 0;
    bool builds = true;
  };
  std::vector<Engine> recommended = {{}};  ///< in the better mode of the heuristics
  std::vector<Engine> fallback;
  int alive = 0;                           ///< descriptors
  int calls = 0;
  int used_engine = -1;                    ///< of the last call: its number among all
  cudnn::Status next_failure = 0;          ///< of calls
  std::size_t work = 1000, kept = 500;     ///< what recurrent layers take of memory
  int math = -1;                           ///< cudnnMathType_t of the last of them
  std::vector<int> algorithms = {0};       ///< cudnnRNNAlgo_t that there are for them
};

/// Functions that work on `fake`, which outlives them. One at a time.
cudnn::Library library_of(FakeCudnn& fake);
/// Those of recurrent layers, into `library`.
void add_recurrent_functions(FakeCudnn& fake, cudnn::Library& library);

}  // namespace hone::test
