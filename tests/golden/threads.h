// Recorded models train to the same bits on any number of threads, unless the library sums by threads. A matmul does so only where sums are longer than here.
#pragma once

#include <cstdint>
#include <string>

namespace hone::test {

enum class Library : std::uint8_t { kUsed, kLeftOut };

/// Some steps on several threads leave the bits that they leave on one. Skips where the plan has a row whose sums depend on the number of threads.
void expect_same_bits_on_threads(const std::string& name, Library library);

}  // namespace hone::test
