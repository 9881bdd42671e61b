#include "runtime/collective/tree_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/check.h"

namespace hone {

namespace {

constexpr std::int64_t kBlock = 1024;  // elements that are summed at a time, so that all levels of the tree stay in the nearest cache
constexpr std::size_t kMostLevels = 16;

/// An element that is only stored: what is added up is f32.
struct Bf16 {
  std::uint16_t code;
};
float widened(Bf16 element) { return std::bit_cast<float>(std::uint32_t{element.code} << 16); }
/// To nearest, ties to even, as base/float_format.h has it.
Bf16 rounded(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fff'ffff) > 0x7f80'0000) return {static_cast<std::uint16_t>((bits >> 16 & 0x8000) | 0x7fc0)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

/// What elements of a type are added up as.
template <typename T>
struct SummedAs {
  using Type = T;
};
template <>
struct SummedAs<Bf16> {
  using Type = float;
};
template <typename T>
void widen(const T* from, std::int64_t count, typename SummedAs<T>::Type* to) {
  if constexpr (std::is_same_v<T, Bf16>) std::transform(from, from + count, to, widened);
  else if (from != to and count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
}
template <typename T>
void narrow(const typename SummedAs<T>::Type* from, std::int64_t count, T* to) {
  if constexpr (std::is_same_v<T, Bf16>) std::transform(from, from + count, to, rounded);
  else if (from != to and count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
}

/// Calls body(T{}) for the element type.
template <typename Body>
void with_element(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kBF16: return body(Bf16{});
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

/// `To` is T, or what it is added up as.
template <typename T, typename To = T>
void sum_blocks(std::span<const void* const> terms, RangePiece range, std::span<void* const> sums) {
  using Sum = typename SummedAs<T>::Type;
  constexpr bool kWidens = not std::is_same_v<Sum, T>;
  struct Part {
    const Sum* elements;
    std::size_t terms;
  };
  HONE_CHECK(static_cast<std::size_t>(std::bit_width(terms.size())) < kMostLevels, "a sum of more terms than the tree has levels for");
  std::array<Sum, kMostLevels * kBlock> scratch;  // not set: of a few terms only the first levels are used
  std::array<Part, kMostLevels + 1> parts;
  for (std::int64_t at = range.begin; at < range.end; at += kBlock) {
    const std::int64_t count = std::min(kBlock, range.end - at);
    std::size_t used = 0, left = terms.size();
    const auto merge_last = [&] {
      const Part right = parts[--used];
      Part& sum = parts[used - 1];
      Sum* to = &scratch[(used - 1) * kBlock];  // where its left part may lie, but no other one
      if constexpr (not kWidens)
        if (left == 0 and used == 1) to = static_cast<T*>(sums[0]) + at;
      add(sum.elements, right.elements, count, to);
      sum = {to, sum.terms + right.terms};
    };
    for (const void* term : terms) {
      const T* const elements = static_cast<const T*>(term) + at;
      if constexpr (kWidens) {
        widen(elements, count, &scratch[used * kBlock]);
        parts[used] = {&scratch[used * kBlock], 1};
      } else {
        parts[used] = {elements, 1};
      }
      ++used;
      --left;
      while (used > 1 and parts[used - 2].terms == parts[used - 1].terms) merge_last();
    }
    while (used > 1) merge_last();
    for (void* sum : sums) narrow(parts[0].elements, count, static_cast<To*>(sum) + at);
  }
}

}  // namespace

std::optional<std::vector<int>> cut_tree(int terms, int parts) {
  if (parts < 1 or terms < parts) return std::nullopt;
  if (parts == 1) return std::vector{terms};
  const auto left_of = [](int count) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(count - 1))); };  // what is under the left branch of a tree's root
  std::optional<std::vector<int>> left = cut_tree(left_of(terms), left_of(parts)), right = cut_tree(terms - left_of(terms), parts - left_of(parts));
  if (not left or not right) return std::nullopt;
  left->insert(left->end(), right->begin(), right->end());
  return left;
}

void sum_in_tree(DType dtype, std::span<const void* const> terms, RangePiece range, std::span<void* const> sums) {
  HONE_CHECK(not terms.empty(), "a sum without terms");
  with_element(dtype, [&]<typename T>(T) { sum_blocks<T>(terms, range, sums); });
}

DType summed_as(DType dtype) { return dtype == DType::kBF16 ? DType::kF32 : dtype; }

void sum_unrounded(DType dtype, std::span<const void* const> terms, RangePiece range, void* sum) {
  HONE_CHECK(not terms.empty(), "a sum without terms");
  with_element(dtype, [&]<typename T>(T) { sum_blocks<T, typename SummedAs<T>::Type>(terms, range, {&sum, 1}); });
}

void round_sums(DType dtype, const void* sums, std::int64_t count, void* to) {
  with_element(dtype, [&]<typename T>(T) { narrow(static_cast<const typename SummedAs<T>::Type*>(sums), count, static_cast<T*>(to)); });
}

void TreeSum::merge_last() {
  const Sum& right = sums_[--used_];
  Sum& left = sums_[used_ - 1];
  left.terms += right.terms;
  for (std::size_t i = 0; i < left.elements.size(); ++i)
    with_element(left.dtypes[i], [&]<typename Stored>(Stored) {
      using T = typename SummedAs<Stored>::Type;
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
    sum.elements[i].assign(static_cast<std::size_t>(like[i].count) * size_of(summed_as(like[i].dtype)), std::byte{0});
  }
  ++terms_;
  return sum;
}

void TreeSum::add(std::span<const ExchangedTensor> term) {
  Sum& sum = add_zeros(term);
  for (std::size_t i = 0; i < term.size(); ++i)
    with_element(term[i].dtype, [&]<typename T>(T) {
      widen(static_cast<const T*>(term[i].data), term[i].count, reinterpret_cast<typename SummedAs<T>::Type*>(sum.elements[i].data()));
    });
}

void TreeSum::take(std::size_t terms, std::span<const ExchangedTensor> to) {
  HONE_CHECK(terms_ <= terms, "more terms were collected than there should be");
  while (terms_ < terms) (void)add_zeros(to);
  while (used_ > 1) merge_last();
  for (std::size_t i = 0; i < to.size(); ++i)
    with_element(to[i].dtype, [&]<typename T>(T) {
      narrow(reinterpret_cast<const typename SummedAs<T>::Type*>(sums_[0].elements[i].data()), to[i].count, static_cast<T*>(to[i].data));
    });
  used_ = terms_ = 0;
}

void ShardSums::add(std::size_t shard, std::span<const ExchangedTensor> term) {
  if (shards_.size() <= shard) shards_.resize(shard + 1);
  Shard& sum = shards_[shard];
  sum.elements.resize(term.size());
  for (std::size_t i = 0; i < term.size(); ++i)
    with_element(term[i].dtype, [&]<typename Stored>(Stored) {
      using T = typename SummedAs<Stored>::Type;
      sum.elements[i].resize(static_cast<std::size_t>(term[i].count) * sizeof(T));
      const auto* const from = static_cast<const Stored*>(term[i].data);
      T* const to = reinterpret_cast<T*>(sum.elements[i].data());
      if (sum.is_empty) return widen(from, term[i].count, to);
      if constexpr (std::is_same_v<T, Stored>) hone::add(to, from, term[i].count, to);
      else std::transform(from, from + term[i].count, to, to, [](Stored element, T before) { return before + widened(element); });
    });
  sum.is_empty = false;
}

void ShardSums::take(std::size_t shards, std::span<const ExchangedTensor> to) {
  HONE_CHECK(shards_.size() <= shards, "more shards have collected than there should be");
  for (Shard& shard : shards_) {
    for (std::size_t i = 0; i < to.size(); ++i)
      with_element(to[i].dtype, [&]<typename T>(T) {
        if (shard.is_empty) std::fill_n(static_cast<T*>(to[i].data), to[i].count, T{});
        else narrow(reinterpret_cast<const typename SummedAs<T>::Type*>(shard.elements[i].data()), to[i].count, static_cast<T*>(to[i].data));
      });
    tree_.add(to);
    shard.is_empty = true;
  }
  tree_.take(shards, to);
}

}  // namespace hone
