// A GPU in cuDNN's words: an H100, of which the library is asked what it would do there.
#pragma once

namespace hone::test {

extern const char* const kDescribedGpu;

}  // namespace hone::test
