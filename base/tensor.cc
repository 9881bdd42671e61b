#include "base/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "base/alignment.h"
#include "base/by_dtype.h"
#include "base/diag.h"
#include "base/float_format.h"
#include "base/huge_pages.h"
#include "base/text.h"

namespace hone {

namespace {


/// `value` in the range of an integer of fewer bits than its type has.
template <typename T>
T low_bits(T value, int bits) {
  const int unused = static_cast<int>(sizeof(T)) * 8 - bits;
  return static_cast<T>(static_cast<T>(static_cast<std::make_unsigned_t<T>>(value) << unused) >> unused);
}

template <typename T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace

std::int64_t checked_element_count(std::span<const std::int64_t> shape) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 40;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw Error(Code::kTooLarge, fmt::format("a tensor of shape [{}] has an extent below 0", fmt::join(shape, ",")), {}, {"extents are counts: 0 or more"});
    if (__builtin_mul_overflow(count, extent, &count) or count > kLimit)
      throw Error(Code::kTooLarge, fmt::format("a tensor of shape [{}] is beyond the limit of 2^40 elements", fmt::join(shape, ",")), {},
                  {"is one of its extents meant to be another one?"});
  }
  return count;
}

Tensor Tensor::zeros(DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.count_ = checked_element_count(shape);
  tensor.shape_ = std::move(shape);
  const std::size_t bytes = tensor.byte_count();
  void* const memory = std::calloc(bytes + kTensorAlignment, 1);  // a large one takes no memory as long as it is only read: moments begin as zeros
  if (memory == nullptr) throw Error(Code::kMemory, fmt::format("no memory for a tensor of {} bytes", bytes));
  wish_for_huge_pages(memory, bytes);
  const std::size_t skipped = kTensorAlignment - reinterpret_cast<std::uintptr_t>(memory) % kTensorAlignment;
  tensor.bytes_ = {static_cast<std::byte*>(memory) + skipped, [memory](std::byte*) { std::free(memory); }};
  return tensor;
}

Tensor Tensor::copy(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes) {
  const std::vector<std::int64_t> extents = shape;
  return make(dtype, std::move(shape), [&](std::span<std::byte> to) {
    if (to.size() != bytes.size())
      throw Error(Code::kUsage, fmt::format("a tensor {}{} takes {} bytes, and {} are given", to_string(dtype), shape_text(extents), to.size(), bytes.size()), {},
                  {fmt::format("as many elements as the product of its shape, each of {} bytes", size_of(dtype))});
    if (not bytes.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
  });
}

std::string Tensor::type_text() const { return fmt::format("{}{}", to_string(dtype_), shape_text(shape_)); }

void Tensor::refuse_type(DType asked) const {
  throw Error(Code::kUsage, fmt::format("the elements of a tensor {} are asked for as {}", type_text(), to_string(asked)), {},
              {"data<T>() gives them as they are: cast() makes another type of them first, and at(i) reads any as a number"});
}

void Tensor::refuse_index(std::int64_t i) const {
  throw Error(Code::kUsage, fmt::format("element {} of a tensor {} is asked for, which has {}", i, type_text(), count_), {}, {"elements count from 0, row by row, through all axes"});
}

double Tensor::at(std::int64_t i) const {
  check_index(i);
  const std::byte* p = bytes_.get() + static_cast<std::size_t>(i) * size_of(dtype_);
  if (not has_cpp_type(dtype_)) return read_storage(dtype_, p);
  return by_dtype(held_as(dtype_), [&]<typename T>() { return static_cast<double>(read<T>(p)); });
}

std::int64_t Tensor::int_at(std::int64_t i) const {
  check_index(i);
  if (is_float(dtype_)) throw Error(Code::kUsage, fmt::format("int_at() reads integers, and the tensor is {}", type_text()), {}, {"at(i) reads any element as a number"});
  const std::byte* p = bytes_.get() + static_cast<std::size_t>(i) * size_of(dtype_);
  return by_dtype(held_as(dtype_), [&]<typename T>() { return static_cast<std::int64_t>(read<T>(p)); });
}

Tensor Tensor::cast(DType dtype) const {
  if (dtype == dtype_) return *this;
  return make(dtype, shape_, [&](std::span<std::byte> to) {
    for (std::int64_t i = 0; i < count_; ++i) {
      std::byte* out = to.data() + static_cast<std::size_t>(i) * size_of(dtype);
      const auto store = [out](auto value) { std::memcpy(out, &value, sizeof(value)); };
      if (not has_cpp_type(dtype)) {
        write_storage(dtype, out, at(i));
        continue;
      }
      by_dtype(held_as(dtype), [&]<typename T>() {
        if constexpr (std::is_same_v<T, bool>) store(static_cast<std::uint8_t>(at(i) != 0));
        else if constexpr (sizeof(T) == 1) store(low_bits(static_cast<T>(is_float(dtype_) ? static_cast<std::int64_t>(at(i)) : int_at(i)), info(dtype).bits));
        else if (is_float(dtype_)) store(static_cast<T>(at(i)));
        else store(static_cast<T>(int_at(i)));
      });
    }
  });
}

Tensor Tensor::reshaped(std::vector<std::int64_t> shape) const {
  if (checked_element_count(shape) != count_)
    throw Error(Code::kUsage, fmt::format("a tensor {} cannot be read as {}", type_text(), shape_text(shape)), {}, {fmt::format("the new shape has to have as many elements: {}", count_)});
  Tensor tensor = *this;
  tensor.shape_ = std::move(shape);
  return tensor;
}

}  // namespace hone
