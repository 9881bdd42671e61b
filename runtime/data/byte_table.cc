#include "runtime/data/byte_table.h"

#include <bit>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hone {

ByteTable::ByteTable(std::span<const float, 256> values) {
  HONE_CHECK(is_fast_here(), "a table of bytes that this processor cannot look up");
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t plane = 0; plane < planes_.size(); ++plane) planes_[plane][i] = static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(values[i]) >> (8 * plane));
}

#if defined(__x86_64__)

namespace {

constexpr std::size_t kVector = 64, kFloats = 16;

/// Of one table, in four vectors: the upper half of the numbers look in the last two.
struct Plane {
  __m512i quarters[4];
};

__attribute__((target("avx512f,avx512bw,avx512vbmi"))) inline __m512i look_up_plane(const Plane& plane, __m512i bytes, __mmask64 are_upper) {
  return _mm512_mask_blend_epi8(are_upper, _mm512_permutex2var_epi8(plane.quarters[0], bytes, plane.quarters[1]), _mm512_permutex2var_epi8(plane.quarters[2], bytes, plane.quarters[3]));
}

/// Up to 64 bytes of `from`, and as many floats. Unpacking works within 128 bits: so that floats come out in order, each of these holds every fourth four of the bytes.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) inline void look_up_vector(const Plane (&planes)[sizeof(float)], const std::uint8_t* from, float* to, std::size_t count) {
  constexpr auto kAll = static_cast<__mmask16>(-1);  // gcc 12 takes what stands for the lanes that are left out as uninitialized
  const __mmask64 wanted = count < kVector ? (__mmask64{1} << count) - 1 : ~__mmask64{0};
  const __m512i every_fourth = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const __m512i bytes = _mm512_maskz_permutexvar_epi32(kAll, every_fourth, _mm512_maskz_loadu_epi8(wanted, from));
  const __mmask64 are_upper = _mm512_movepi8_mask(bytes);
  const __m512i first = look_up_plane(planes[0], bytes, are_upper), second = look_up_plane(planes[1], bytes, are_upper), third = look_up_plane(planes[2], bytes, are_upper), fourth = look_up_plane(planes[3], bytes, are_upper);
  const __m512i low_halves = _mm512_unpacklo_epi8(first, second), high_halves = _mm512_unpackhi_epi8(first, second);
  const __m512i low_ends = _mm512_unpacklo_epi8(third, fourth), high_ends = _mm512_unpackhi_epi8(third, fourth);
  const __m512i floats[] = {_mm512_unpacklo_epi16(low_halves, low_ends), _mm512_unpackhi_epi16(low_halves, low_ends), _mm512_unpacklo_epi16(high_halves, high_ends), _mm512_unpackhi_epi16(high_halves, high_ends)};
  for (std::size_t i = 0; i < kVector / kFloats; ++i) _mm512_mask_storeu_epi32(to + kFloats * i, static_cast<__mmask16>(wanted >> (kFloats * i)), floats[i]);
}

__attribute__((target("avx512f,avx512bw,avx512vbmi"))) void look_up_floats(const std::uint8_t* tables, const std::uint8_t* from, float* to, std::size_t count) {
  Plane planes[sizeof(float)];
  for (Plane& plane : planes)
    for (__m512i& quarter : plane.quarters) {
      quarter = _mm512_loadu_si512(tables);
      tables += kVector;
    }
  for (; count >= kVector; from += kVector, to += kVector, count -= kVector) look_up_vector(planes, from, to, kVector);
  if (count > 0) look_up_vector(planes, from, to, count);
}

}  // namespace

bool ByteTable::is_fast_here() { return __builtin_cpu_supports("avx512bw") and __builtin_cpu_supports("avx512vbmi"); }

void ByteTable::look_up(const std::uint8_t* from, float* to, std::size_t count) const { look_up_floats(planes_[0].data(), from, to, count); }

#else

bool ByteTable::is_fast_here() { return false; }
void ByteTable::look_up(const std::uint8_t*, float*, std::size_t) const { internal_error(__FILE__, __LINE__, "a table that nothing made"); }

#endif

}  // namespace hone
