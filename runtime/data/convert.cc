#include "runtime/data/convert.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/by_dtype.h"

namespace hone {

namespace {

// Element types with a meaning of their own, so that a half is not taken for an integer.
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};
struct Bool {
  std::uint8_t byte;
};  // a file's byte, which need not be 0 or 1

template <typename T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> or std::is_same_v<T, Half> or std::is_same_v<T, BFloat16>;

template <typename Visit>
decltype(auto) visit_type(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::kF16: return visit(Half{});
    case DType::kBF16: return visit(BFloat16{});
    case DType::kBool: return visit(Bool{});
    default: return by_dtype(dtype, [&]<typename T>() { return visit(T{}); });
  }
}

template <typename T>
T load(const std::byte* from, std::size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, Half>) return half_to_float(value.bits);
  else if constexpr (std::is_same_v<T, BFloat16>) return bfloat16_to_float(value.bits);
  else if constexpr (std::is_same_v<T, Bool>) return value.byte != 0 ? 1 : 0;
  else return static_cast<double>(value);
}

template <typename T>
bool is_beyond_int(T value) {
  if constexpr (std::is_same_v<T, std::uint64_t>) return value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  else return false;
}

template <typename T>
std::int64_t as_int(T value) {
  if constexpr (std::is_same_v<T, Bool>) return value.byte != 0 ? 1 : 0;
  else if constexpr (kIsFloat<T>) return 0;
  else if constexpr (std::is_same_v<T, std::uint64_t>) return is_beyond_int(value) ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(value);
  else return value;
}

template <typename To>
To from_double(double value) {
  if constexpr (std::is_same_v<To, Half>) return {float_to_half(static_cast<float>(value))};
  else if constexpr (std::is_same_v<To, BFloat16>) return {float_to_bfloat16(static_cast<float>(value))};
  else return static_cast<To>(value);
}

template <typename From, typename To>
void convert_elements(const std::byte* from, std::byte* to, std::size_t count, double scale) {
  for (std::size_t i = 0; i < count; ++i) {
    To value{};
    if constexpr (kIsFloat<To>) value = from_double<To>(as_double(load<From>(from, i)) * scale);
    else if constexpr (std::is_same_v<To, Bool>) value = {static_cast<std::uint8_t>(as_int(load<From>(from, i)) != 0)};
    else value = static_cast<To>(as_int(load<From>(from, i)));
    std::memcpy(to + i * sizeof(To), &value, sizeof(To));
  }
}

void convert_any(DType from_type, DType to_type, const std::byte* from, std::byte* to, std::size_t count, double scale) {
  visit_type(from_type, [&](auto from_value) {
    visit_type(to_type, [&](auto to_value) { convert_elements<decltype(from_value), decltype(to_value)>(from, to, count, scale); });
  });
}

/// Axes of size 1 left out.
std::vector<std::int64_t> squeezed(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> result;
  for (const std::int64_t extent : shape)
    if (extent != 1) result.push_back(extent);
  return result;
}

/// Does each axis of `coarse` consist of neighbouring axes of `fine`?
bool is_merged(const std::vector<std::int64_t>& fine, const std::vector<std::int64_t>& coarse) {
  std::size_t at = 0;
  for (const std::int64_t extent : coarse) {
    std::int64_t product = 1;
    while (at < fine.size() and product < extent) product *= fine[at++];
    if (product != extent) return false;
  }
  return at == fine.size();
}

}  // namespace

bool can_convert(DType from, DType to) {
  const auto in_files = [](DType dtype) { return not is_storage_only(dtype) or info(dtype).bits >= 16; };
  return in_files(from) and in_files(to) and (is_float(to) or not is_float(from));
}

Converter::Converter(DType from, DType to, double scale) : from_(from), to_(to), scale_(scale) {
  HONE_CHECK(can_convert(from, to), "a conversion from floats to integers");
  const bool same = from == to and scale == 1;
  if (size_of(from) != 1 or (same and from != DType::kBool)) return;
  std::vector<std::byte> all(256);
  for (int i = 0; i < 256; ++i) all[static_cast<std::size_t>(i)] = static_cast<std::byte>(i);
  table_.resize(256 * size_of(to));
  convert_any(from, to, all.data(), table_.data(), 256, scale);
  if (from == DType::kU8 and to == DType::kF32) byte_factor_ = factor_for_bytes(scale);
}

Converter::Converter(std::span<const float, 256> values) : from_(DType::kU8), to_(DType::kF32), scale_(1) {
  const std::span<const std::byte> bytes = std::as_bytes(values);
  table_.assign(bytes.begin(), bytes.end());
  if (ByteTable::is_fast_here()) byte_table_.emplace(values);
}

void Converter::convert(const std::byte* from, std::byte* to, std::size_t count) const {
  const auto look_up = [&](auto element) {
    using T = decltype(element);
    const auto* table = reinterpret_cast<const T*>(table_.data());
    auto* result = reinterpret_cast<T*>(to);
    for (std::size_t i = 0; i < count; ++i) result[i] = table[std::to_integer<std::size_t>(from[i])];
  };
  if (only_copies()) {
    if (count > 0) std::memcpy(to, from, count * size_of(from_));
  } else if (byte_factor_) {
    scale_bytes(reinterpret_cast<const std::uint8_t*>(from), reinterpret_cast<float*>(to), count, *byte_factor_);
  } else if (byte_table_) {
    byte_table_->look_up(reinterpret_cast<const std::uint8_t*>(from), reinterpret_cast<float*>(to), count);
  } else if (table_.empty()) {
    convert_any(from_, to_, from, to, count, scale_);
  } else if (size_of(to_) == 1) {
    look_up(std::uint8_t{});
  } else if (size_of(to_) == 2) {
    look_up(std::uint16_t{});
  } else if (size_of(to_) == 4) {
    look_up(std::uint32_t{});
  } else {
    look_up(std::uint64_t{});
  }
}

std::optional<std::size_t> find_outside(DType dtype, const std::byte* from, std::size_t count, std::int64_t least, std::int64_t most,
                                        std::optional<std::int64_t> ignored) {
  return visit_type(dtype, [&](auto value) -> std::optional<std::size_t> {
    using T = decltype(value);
    for (std::size_t i = 0; i < count; ++i) {
      const T element = load<T>(from, i);
      const std::int64_t number = as_int(element);
      if (is_beyond_int(element) or ((number < least or number > most) and not(ignored and number == *ignored))) return i;
    }
    return std::nullopt;
  });
}

std::int64_t integer_at(DType dtype, const std::byte* from, std::size_t index) {
  return visit_type(dtype, [&](auto value) { return as_int(load<decltype(value)>(from, index)); });
}

std::string integer_text(DType dtype, const std::byte* from, std::size_t index) {
  return dtype == DType::kU64 ? std::to_string(load<std::uint64_t>(from, index)) : std::to_string(integer_at(dtype, from, index));
}

std::pair<std::int64_t, std::int64_t> range_of(DType dtype) {
  return visit_type(dtype, [](auto value) -> std::pair<std::int64_t, std::int64_t> {
    using T = decltype(value);
    if constexpr (std::is_same_v<T, Bool>) return {0, 1};
    else if constexpr (kIsFloat<T>) return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
    else return {as_int(std::numeric_limits<T>::min()), as_int(std::numeric_limits<T>::max())};
  });
}

bool is_same_but_for_grouping(std::span<const std::int64_t> from, std::span<const std::int64_t> to) {
  const auto a = squeezed(from), b = squeezed(to);
  if (std::find(a.begin(), a.end(), 0) != a.end()) return a == b;
  return a == b or is_merged(a, b) or is_merged(b, a);
}

}  // namespace hone
