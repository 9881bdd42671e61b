#include "runtime/collective/tree_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace hone {

namespace {

constexpr std::int64_t kBlock = 1024;  // elements that are summed at a time, so that all levels of the tree stay in the nearest cache
constexpr std::size_t kMostLevels = 16;

/// Calls body(T{}) for the element type.
template <typename Body>
void with_element(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32: return body(float{});
    case DType::kF64: return body(double{});
    case DType::kI32: return body(std::uint32_t{});  // integers wrap around
    case DType::kI64: return body(std::uint64_t{});
    default: internal_error(__FILE__, __LINE__, "replicas sum elements of another type");
  }
}

/// `sum` may be `a` or `b`. In steps of a cache line, each read before it is written, so that any compiler takes vectors for it.
template <typename T>
void add(const T* a, const T* b, std::int64_t count, T* sum) {
  constexpr std::int64_t kStep = 64 / sizeof(T);
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    T line[kStep];
    for (std::int64_t k = 0; k < kStep; ++k) line[k] = a[i + k] + b[i + k];
    std::memcpy(sum + i, line, sizeof line);
  }
  for (; i < count; ++i) sum[i] = a[i] + b[i];
}

template <typename T>
void sum_blocks(std::span<const void* const> terms, RangePiece range, std::span<void* const> sums) {
  struct Part {
    const T* elements;
    std::size_t terms;
  };
  HONE_CHECK(static_cast<std::size_t>(std::bit_width(terms.size())) < kMostLevels, "a sum of more terms than the tree has levels for");
  std::array<T, kMostLevels * kBlock> scratch;  // not set: of a few terms only the first levels are used
  std::array<Part, kMostLevels + 1> parts;
  for (std::int64_t at = range.begin; at < range.end; at += kBlock) {
    const std::int64_t count = std::min(kBlock, range.end - at);
    std::size_t used = 0, left = terms.size();
    T* const first = static_cast<T*>(sums[0]) + at;
    const auto merge_last = [&] {
      const Part right = parts[--used];
      Part& sum = parts[used - 1];
      T* const to = left == 0 and used == 1 ? first : &scratch[(used - 1) * kBlock];  // where its left part may lie, but no other one
      add(sum.elements, right.elements, count, to);
      sum = {to, sum.terms + right.terms};
    };
    for (const void* term : terms) {
      parts[used++] = {static_cast<const T*>(term) + at, 1};
      --left;
      while (used > 1 and parts[used - 2].terms == parts[used - 1].terms) merge_last();
    }
    while (used > 1) merge_last();
    for (void* sum : sums)
      if (static_cast<T*>(sum) + at != parts[0].elements) std::memcpy(static_cast<T*>(sum) + at, parts[0].elements, static_cast<std::size_t>(count) * sizeof(T));
  }
}

}  // namespace

void sum_in_tree(DType dtype, std::span<const void* const> terms, RangePiece range, std::span<void* const> sums) {
  HONE_CHECK(not terms.empty(), "a sum without terms");
  with_element(dtype, [&]<typename T>(T) { sum_blocks<T>(terms, range, sums); });
}

void TreeSum::merge_last() {
  const Sum& right = sums_[--used_];
  Sum& left = sums_[used_ - 1];
  left.terms += right.terms;
  for (std::size_t i = 0; i < left.elements.size(); ++i)
    with_element(left.dtypes[i], [&]<typename T>(T) {
      T* const to = reinterpret_cast<T*>(left.elements[i].data());
      hone::add(to, reinterpret_cast<const T*>(right.elements[i].data()), static_cast<std::int64_t>(left.elements[i].size() / sizeof(T)), to);
    });
}

TreeSum::Sum& TreeSum::add_zeros(std::span<const ExchangedTensor> like) {
  while (used_ > 1 and sums_[used_ - 2].terms == sums_[used_ - 1].terms) merge_last();
  if (used_ == sums_.size()) sums_.emplace_back();
  Sum& sum = sums_[used_++];
  sum.terms = 1;
  sum.dtypes.clear();
  sum.elements.resize(like.size());
  for (std::size_t i = 0; i < like.size(); ++i) {
    sum.dtypes.push_back(like[i].dtype);
    sum.elements[i].assign(like[i].bytes(), std::byte{0});
  }
  ++terms_;
  return sum;
}

void TreeSum::add(std::span<const ExchangedTensor> term) {
  Sum& sum = add_zeros(term);
  for (std::size_t i = 0; i < term.size(); ++i)
    if (term[i].count > 0) std::memcpy(sum.elements[i].data(), term[i].data, term[i].bytes());
}

void TreeSum::take(std::size_t terms, std::span<const ExchangedTensor> to) {
  HONE_CHECK(terms_ <= terms, "more terms were collected than there should be");
  while (terms_ < terms) (void)add_zeros(to);
  while (used_ > 1) merge_last();
  for (std::size_t i = 0; i < to.size(); ++i)
    if (to[i].count > 0) std::memcpy(to[i].data, sums_[0].elements[i].data(), to[i].bytes());
  used_ = terms_ = 0;
}

}  // namespace hone
