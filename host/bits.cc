// Bits as another type.
#include <cstring>

#include "host/rules.h"

namespace hone::host {

namespace {

/// Interpreted in double, f32 lies in memory as f64: there the bits are those of the number rounded to f32.
void run_bit_cast(const HostAttributes&, std::span<const HostTensor> operands, std::span<const HostTensor> results, HostScratch&) {
  const HostTensor &x = operands[0], &y = results[0];
  const auto count = static_cast<std::size_t>(x.element_count());
  const std::size_t from = size_of(x.dtype), to = size_of(y.dtype);
  for (std::size_t i = 0; i < count; ++i) {
    const auto* source = static_cast<const std::byte*>(x.data) + i * from;
    auto* target = static_cast<std::byte*>(y.data) + i * to;
    if (from == to) {
      std::memcpy(target, source, from);
    } else if (x.dtype == DType::kF64) {
      const auto narrow = static_cast<float>(*reinterpret_cast<const double*>(source));
      std::memcpy(target, &narrow, sizeof narrow);
    } else {
      float narrow = 0;
      std::memcpy(&narrow, source, sizeof narrow);
      *reinterpret_cast<double*>(target) = narrow;
    }
  }
}

}  // namespace

constinit const HostRules bit_cast_rules = {
    .call = {.operands = {{.name = "x"}}, .results = {{.name = "y"}}},
    .fits = [](const HostAttributes&, HostTypes operands, HostTypes results) {
      const HostTensor &x = *operands[0], &y = *results[0];
      return first_of({why_no_count("y", &y, x.element_count()), size_of(x.dtype) == size_of(y.dtype) ? "" : "x and y have elements of different sizes"});
    }};

constinit const HostFunction bit_cast = {.name = "bit_cast", .doc = "the bits of x as y's element type", .run = run_bit_cast};

}  // namespace hone::host
