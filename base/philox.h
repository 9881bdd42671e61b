// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): random bits as a pure function of key and counter.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace hone {

/// Four random words for (key, counter).
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high, std::uint64_t counter_low) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  std::array<std::uint32_t, 4> c = {static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32), static_cast<std::uint32_t>(counter_high),
                                    static_cast<std::uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

/// Two numbers in [0, 1) with 53 random bits each.
constexpr std::pair<double, double> philox_uniform(std::uint64_t key, std::uint64_t stream, std::uint64_t element) {
  const auto r = philox(key, stream, element);
  const auto unit = [](std::uint32_t high, std::uint32_t low) { return static_cast<double>((std::uint64_t{high} << 21) ^ (low >> 11)) * 0x1p-53; };
  return {unit(r[0], r[1]), unit(r[2], r[3])};
}

/// A standard normal number (Box & Muller 1958).
inline double philox_normal(std::uint64_t key, std::uint64_t stream, std::uint64_t element) {
  const auto [radius, angle] = philox_uniform(key, stream, element);
  return std::sqrt(-2 * std::log(1 - radius)) * std::cos(2 * std::numbers::pi * angle);
}

}  // namespace hone
