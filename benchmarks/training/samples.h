// Made-up data with a rule that can be learned: the same rules and sizes as the peers'. Equal seeds give equal data.
#pragma once

#include <cstdint>
#include <vector>

#include "base/tensor.h"

namespace hone::benchmarks {

struct Samples {
  Tensor x, y;
};

/// Each class has a random image; a sample is half its class's, half noise. f32[count,shape...] in [0, 1), i64[count].
Samples draw_images(std::int64_t count, const std::vector<std::int64_t>& shape, std::int64_t classes);

/// Words as frequent as in a language; a class shifts the rank of three in ten of them; lengths differ, and zeros stand in front. i32[count,length], i64[count].
Samples draw_texts(std::int64_t count, std::int64_t length, std::int64_t vocabulary, std::int64_t classes);

/// Stretches of a noisy chain: three times in four a token follows from the one before. i32[count,length], and i64[count,length] one token further on.
Samples draw_chains(std::int64_t count, std::int64_t length, std::int64_t vocabulary);

/// Standard normal x, y = sin(sum of x) + x[0] / 2. f32[count,size], f32[count,1].
Samples draw_sums(std::int64_t count, std::int64_t size);

}  // namespace hone::benchmarks
