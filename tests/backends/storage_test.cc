// Conversions to and from types that are storage only, as compiled code does them: each code and each bit as base/float_format.h has it.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/float_format.h"
#include "ir/kernel/scalar_math.h"
#include "tests/backends/kernel_case.h"

namespace hone {
namespace {

/// Does an f64 become a denormal of f32 on its way, which is 0 where denormals are zero?
template <typename T>
bool is_flushed(T number, unsigned mode) { return mode != 0 and sizeof(T) == 8 and std::abs(static_cast<double>(number)) < 0x1p-126; }

/// Runs the kernel, which reads its first buffer and writes its second, on each CPU level, with denormals and with denormals as zero, as in training.
template <typename To, typename From, typename Check>
void run_everywhere(const Kernel& kernel, const std::vector<From>& from, Check check) {
  const Kernel* const kernels[] = {&kernel};
  for (const std::string& cpu : runnable_cpus()) {
    const LoadedKernels loaded(compile_shared_object(kernels, {.cpu = cpu}));
    for (const unsigned mode : {0U, 0x8040U}) {
      std::vector<To> to(from.size());
      void* const buffers[] = {const_cast<From*>(from.data()), to.data()};
      const unsigned before = _mm_getcsr();
      _mm_setcsr(before | mode);
      loaded[kernel.name](buffers, nullptr, 0, static_cast<std::int64_t>(from.size()));
      _mm_setcsr(before);
      for (std::size_t i = 0; i < from.size(); ++i)
        if (not is_flushed(from[i], mode) and not check(from[i], to[i])) {
          ADD_FAILURE() << kernel.name << " on " << cpu << (mode != 0 ? " without denormals" : "") << " gives " << +to[i] << " for " << +from[i];
          break;
        }
    }
  }
}

/// y = convert(x) over `count` elements.
template <typename Convert>
Kernel kernel_of(std::string name, DType from, DType to, std::size_t count, Convert convert) {
  const auto n = static_cast<std::int64_t>(count);
  KernelWriter w(std::move(name));
  const auto x = w.operand(from, {n}), y = w.result(to, {n});
  const Scalar i = w.outer(n);
  w.store(y, {i}, convert(w.load(x, {i})));
  return std::move(w.kernel);
}

template <typename Code>
void expect_widens(const FloatFormat& format) {
  std::vector<Code> codes(std::size_t{1} << sizeof(Code) * 8);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<Code>(i);
  const Kernel kernel = kernel_of("widen_" + std::string(to_string(format.dtype)), format.dtype, DType::kF32, codes.size(), [](Scalar x) { return x; });
  run_everywhere<float>(kernel, codes, [&](Code code, float found) {
    const float expected = decode(format, code);
    return std::isnan(expected) ? std::isnan(found) : std::bit_cast<std::uint32_t>(found) == std::bit_cast<std::uint32_t>(expected);
  });
}

TEST(EmitStorage, WidensEveryCode) {
  for (const FloatFormat& format : kFloatFormats) {
    if (size_of(format.dtype) == 1) expect_widens<std::uint8_t>(format);
    else expect_widens<std::uint16_t>(format);
  }
}

/// Every number of the format, every tie between two, their neighbours, and numbers of all sizes.
template <typename T>
std::vector<T> hard_numbers(const FloatFormat& format) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  std::vector<T> numbers = {std::numeric_limits<T>::quiet_NaN(), -std::numeric_limits<T>::quiet_NaN(), kInfinity, -kInfinity, std::numeric_limits<T>::max(),
                            std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::min(), 0, -T{0}};
  for (std::uint32_t code = 0; code <= format.max; ++code) {
    const T here = decode(format, code);
    const T next = code < format.max ? static_cast<T>(decode(format, code + 1)) : format.mantissa_bits == 0 ? 2 * here : 2 * here - decode(format, code - 1);
    for (const T middle : {here, here / 2 + next / 2})
      for (const T x : {middle, std::nextafter(middle, kInfinity), std::nextafter(middle, T{0})})
        numbers.push_back(x), numbers.push_back(-x);
  }
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 65'521) numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return numbers;
}

template <typename T, typename Code>
void expect_rounds(const FloatFormat& format, StorageRounding to) {
  const DType from = kDTypeOf<T>;
  const std::vector<T> numbers = hard_numbers<T>(format);
  const Kernel kernel = kernel_of("round_" + std::string(to_string(to.dtype)) + "_from_" + std::string(to_string(from)), from, to.dtype, numbers.size(),
                                  [&](Scalar x) { return expr::round_to(x, to); });
  const std::uint32_t sign = 1U << format.magnitude_bits();
  run_everywhere<Code>(kernel, numbers, [&](T number, Code found) {
    if (std::isnan(number)) return std::isnan(decode(format, found)) == std::isnan(decode(format, format.nan)) and (format.nan < sign or found == format.nan);
    return found == encode(format, number, to.rounding, to.saturate);
  });
}

TEST(EmitStorage, RoundsAsTheTableSays) {
  for (const FloatFormat& format : kFloatFormats) {
    for (const bool saturate : {false, true}) {
      for (const Rounding rounding : {Rounding::kNearest, Rounding::kUp, Rounding::kDown}) {
        if (rounding != Rounding::kNearest and format.mantissa_bits != 0) continue;
        const StorageRounding to{format.dtype, rounding, saturate};
        if (size_of(format.dtype) == 1) {
          expect_rounds<float, std::uint8_t>(format, to);
          expect_rounds<double, std::uint8_t>(format, to);
        } else if (not saturate) {
          expect_rounds<float, std::uint16_t>(format, to);
          expect_rounds<double, std::uint16_t>(format, to);
        }
      }
    }
  }
}

TEST(EmitStorage, SmallIntegersKeepTheirLowBits) {
  for (const DType dtype : {DType::kI4, DType::kU4, DType::kI2, DType::kU2}) {
    std::vector<std::int32_t> numbers = {INT32_MIN, INT32_MAX};
    for (std::int32_t number = -40; number <= 40; ++number) numbers.push_back(number);
    const auto name = std::string(to_string(dtype));
    const Kernel narrow = kernel_of("narrow_" + name, DType::kI32, dtype, numbers.size(), [](Scalar x) { return x; });
    run_everywhere<std::int8_t>(narrow, numbers, [&](std::int32_t number, std::int8_t found) { return found == scalar_math::wrap(dtype, number); });
    const Kernel round = kernel_of("round_" + name, DType::kI32, DType::kI32, numbers.size(), [&](Scalar x) { return expr::round_to(x, {dtype}); });
    run_everywhere<std::int32_t>(round, numbers, [&](std::int32_t number, std::int32_t found) { return found == scalar_math::wrap(dtype, number); });
    const Kernel widen = kernel_of("widen_" + name, dtype, DType::kI32, 3, [](Scalar x) { return x; });
    run_everywhere<std::int32_t>(widen, std::vector<std::int8_t>{0, 1, static_cast<std::int8_t>(scalar_math::lowest(dtype))}, [](std::int8_t code, std::int32_t found) { return found == code; });
  }
}

TEST(EmitStorage, InterpreterRoundsAlike) {
  for (const FloatFormat& format : kFloatFormats) {
    const Kernel kernel = kernel_of("round_trip", DType::kF32, DType::kF32, 500, [&](Scalar x) { return expr::round_to(x, {format.dtype}); });
    expect_agrees(kernel, {.tolerance = 0, .fill = [](std::uint32_t, std::int64_t i) { return std::ldexp(1 + static_cast<double>(i % 37) / 37, static_cast<int>(i % 40) - 25); }});
  }
}

}  // namespace
}  // namespace hone
