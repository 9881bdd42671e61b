#include "runtime/device/peak.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "runtime/device/cpu.h"
#include "runtime/device/host_memory.h"
#include "runtime/device/team.h"

namespace hone {

namespace {

constexpr int kTries = 5;
constexpr std::int64_t kArrayElements = 16 << 20, kArrays = 3;
constexpr std::int64_t kPeakRounds = 1'000'000;
constexpr int kChains = 12;  // that do not wait for each other: the latency of an operation times the number that can begin at once, and some more

/// The least time of some runs of the team.
template <typename Body>
double least_seconds(Team& team, const Body& body) {
  using Clock = std::chrono::steady_clock;
  double least = 1e30;
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point begin = Clock::now();
    team.run(body);
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

/// The borders of pieces are multiples of 64.
void triad(float* a, const float* b, const float* c, RangePiece piece) {
  const __m128 factor = _mm_set1_ps(0.5F);
  for (std::int64_t i = piece.begin; i < piece.end; i += 4) _mm_store_ps(a + i, _mm_add_ps(_mm_load_ps(b + i), _mm_mul_ps(factor, _mm_load_ps(c + i))));
}

// One round is one operation in each chain. The result is given, so that nothing is left out.

__attribute__((target("avx512f"))) float multiply_add_512(std::int64_t rounds) {
  __m512 chains[kChains];
  const __m512 factor = _mm512_set1_ps(0.999F), term = _mm512_set1_ps(0.001F);
  for (__m512& chain : chains) chain = factor;
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m512& chain : chains) chain = _mm512_fmadd_ps(chain, factor, term);
  }
  for (int i = 1; i < kChains; ++i) chains[0] = _mm512_add_ps(chains[0], chains[i]);
  return _mm512_cvtss_f32(chains[0]);
}

__attribute__((target("avx2,fma"))) float multiply_add_256(std::int64_t rounds) {
  __m256 chains[kChains];
  const __m256 factor = _mm256_set1_ps(0.999F), term = _mm256_set1_ps(0.001F);
  for (__m256& chain : chains) chain = factor;
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m256& chain : chains) chain = _mm256_fmadd_ps(chain, factor, term);
  }
  for (int i = 1; i < kChains; ++i) chains[0] = _mm256_add_ps(chains[0], chains[i]);
  return _mm256_cvtss_f32(chains[0]);
}

float multiply_add_128(std::int64_t rounds) {
  __m128 chains[kChains];
  const __m128 factor = _mm_set1_ps(0.999F), term = _mm_set1_ps(0.001F);
  for (__m128& chain : chains) chain = factor;
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m128& chain : chains) chain = _mm_add_ps(_mm_mul_ps(chain, factor), term);
  }
  for (int i = 1; i < kChains; ++i) chains[0] = _mm_add_ps(chains[0], chains[i]);
  return _mm_cvtss_f32(chains[0]);
}

struct MultiplyAdd {
  CpuLevel level;
  int lanes;
  float (*run)(std::int64_t rounds);
};
constexpr MultiplyAdd kMultiplyAdds[] = {{CpuLevel::kV4, 16, multiply_add_512}, {CpuLevel::kV3, 8, multiply_add_256}, {CpuLevel::kV1, 4, multiply_add_128}};

double measure_flops(Team& team) {
  const MultiplyAdd& best = *std::ranges::find_if(kMultiplyAdds, [](const MultiplyAdd& each) { return each.level <= host_cpu_level(); });
  volatile float kept = 0;
  const double seconds = least_seconds(team, [&](const Team::Member& member) {
    const float result = best.run(kPeakRounds);
    if (member.number() == 0) kept = result;
  });
  return 2.0 * kChains * best.lanes * static_cast<double>(kPeakRounds) * team.threads() / seconds;
}

double measure_memory(Team& team) {
  const HostMemory memory(static_cast<std::size_t>(kArrays * kArrayElements) * sizeof(float), "measuring the memory's speed");
  auto* const a = reinterpret_cast<float*>(memory.data());
  float *const b = a + kArrayElements, *const c = b + kArrayElements;
  const auto each_piece = [&](const Team::Member& member, const auto& use) { use(piece_of(kArrayElements, member.count(), member.number())); };
  team.run([&](const Team::Member& member) {  // each thread's pages near it
    each_piece(member, [&](RangePiece piece) {
      for (float* array : {a, b, c}) std::fill(array + piece.begin, array + piece.end, 1.0F);
    });
  });
  const double seconds = least_seconds(team, [&](const Team::Member& member) { each_piece(member, [&](RangePiece piece) { triad(a, b, c, piece); }); });
  return static_cast<double>(kArrays * kArrayElements) * sizeof(float) / seconds;
}

}  // namespace

MachinePeak measure_peak(int threads) {
  Team team(threads);
  const Team::InUse in_use(team);
  team.run([](const Team::Member&) {});
  return {.bytes_per_second = measure_memory(team), .flops_per_second = measure_flops(team)};
}

}  // namespace hone
