#include "runtime/data/scale_bytes.h"

#include <array>
#include <bit>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hone {

#if defined(__x86_64__)

namespace {

// from * high is exact inside of the fused sum, so one rounding is left, but for that of the small part.

__attribute__((target("avx2,fma"))) void scale_eights(const std::uint8_t* from, float* to, std::size_t eights, SplitFactor factor) {
  const __m256 high = _mm256_set1_ps(factor.high), low = _mm256_set1_ps(factor.low);
  for (std::size_t i = 0; i < eights; ++i) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8 * i));
    const __m256 numbers = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    _mm256_storeu_ps(to + 8 * i, _mm256_fmadd_ps(numbers, high, _mm256_mul_ps(numbers, low)));
  }
}

/// Whole cache lines at once: where they come from elsewhere, more of them are on their way.
__attribute__((target("avx512f"))) void scale_sixteens(const std::uint8_t* from, float* to, std::size_t sixteens, SplitFactor factor) {
  constexpr __mmask16 kAll = 0xffff;  // gcc 12 takes what stands for the lanes that are left out as uninitialized
  const __m512 high = _mm512_set1_ps(factor.high), low = _mm512_set1_ps(factor.low);
  for (std::size_t i = 0; i < sixteens; ++i) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * i));
    const __m512 numbers = _mm512_maskz_cvtepi32_ps(kAll, _mm512_maskz_cvtepu8_epi32(kAll, bytes));
    _mm512_storeu_ps(to + 16 * i, _mm512_fmadd_ps(numbers, high, _mm512_mul_ps(numbers, low)));
  }
}

}  // namespace

std::optional<SplitFactor> factor_for_bytes(double factor) {
  if (not __builtin_cpu_supports("avx2") or not __builtin_cpu_supports("fma")) return std::nullopt;
  const auto high = static_cast<float>(factor);
  const SplitFactor split = {high, static_cast<float>(factor - static_cast<double>(high))};
  std::array<std::uint8_t, 256> bytes{};
  std::array<float, 256> numbers{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  scale_bytes(bytes.data(), numbers.data(), bytes.size(), split);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (std::bit_cast<std::uint32_t>(numbers[i]) != std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<double>(i) * factor))) return std::nullopt;
  return split;
}

void scale_bytes(const std::uint8_t* from, float* to, std::size_t count, SplitFactor factor) {
  static const bool has_sixteens = __builtin_cpu_supports("avx512f");
  const std::size_t sixteens = has_sixteens ? count / 16 : 0;
  if (sixteens > 0) scale_sixteens(from, to, sixteens, factor);
  from += 16 * sixteens, to += 16 * sixteens, count -= 16 * sixteens;
  const std::size_t whole = count / 8 * 8;
  scale_eights(from, to, count / 8, factor);
  if (whole == count) return;
  std::array<std::uint8_t, 8> last{};  // the rest goes the same way, so that it gets the same bits
  std::array<float, 8> scaled{};
  for (std::size_t i = whole; i < count; ++i) last[i - whole] = from[i];
  scale_eights(last.data(), scaled.data(), 1, factor);
  for (std::size_t i = whole; i < count; ++i) to[i] = scaled[i - whole];
}

#else

std::optional<SplitFactor> factor_for_bytes(double) { return std::nullopt; }
void scale_bytes(const std::uint8_t*, float*, std::size_t, SplitFactor) { internal_error(__FILE__, __LINE__, "a factor that nothing gave"); }

#endif

}  // namespace hone
