#include "tests/collective/conformance.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "base/diag.h"
#include "base/float_format.h"
#include "runtime/collective/tree_sum.h"
#include "runtime/device/team.h"

namespace hone::test {

namespace {

constexpr std::int64_t kMostElements = 100'003, kCounts[] = {0, 1, 3, 63, 64, 1000, 4097, kMostElements};

/// What `rank` has at `i`: numbers of very different sizes, so that a sum in another order rounds otherwise.
template <typename T>
T value(int rank, std::int64_t i) {
  constexpr std::array kPowersOfTen = {1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3};
  const std::uint64_t mixed = (static_cast<std::uint64_t>(i) * 2654435761u + static_cast<std::uint64_t>(rank) * 40503u + 12345u) % 100'003u;
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>((static_cast<double>(mixed) - 50'000) * kPowersOfTen[mixed % kPowersOfTen.size()]);
  return static_cast<T>(mixed * (mixed + 7) - 5'000'000'000u);
}

template <typename T>
constexpr DType kDType = std::is_same_v<T, float> ? DType::kF32 : std::is_same_v<T, double> ? DType::kF64 : std::is_same_v<T, std::int32_t> ? DType::kI32 : DType::kI64;

template <typename T>
std::vector<T> values(int rank, std::int64_t count) {
  std::vector<T> all(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) all[static_cast<std::size_t>(i)] = value<T>(rank, i);
  return all;
}

template <typename T>
ExchangedTensor tensor_of(std::vector<T>& elements) {
  return {kDType<T>, static_cast<std::int64_t>(elements.size()), elements.data()};
}

/// The sum that the header promises of what `terms_of(rank)` gives, written as the definition has it.
template <typename T>
std::vector<T> sums_in_tree(int begin, int end, std::vector<T> (*terms_of)(int rank)) {
  if (end - begin == 1) return terms_of(begin);
  int left = 1;
  while (left * 2 < end - begin) left *= 2;
  std::vector<T> a = sums_in_tree<T>(begin, begin + left, terms_of);
  const std::vector<T> b = sums_in_tree<T>(begin + left, end, terms_of);
  for (std::size_t i = 0; i < a.size(); ++i)
    if constexpr (std::is_integral_v<T>) a[i] = static_cast<T>(static_cast<std::make_unsigned_t<T>>(a[i]) + static_cast<std::make_unsigned_t<T>>(b[i]));
    else a[i] += b[i];
  return a;
}

template <typename T>
std::vector<T> most_values(int rank) {
  return values<T>(rank, kMostElements);
}

/// What the ranks' terms add up to; made once for all ranks that are threads of this process.
template <typename T, std::vector<T> (*terms_of)(int rank) = most_values<T>>
const std::vector<T>& sums_of_ranks(int size) {
  static std::mutex mutex;
  static std::map<int, std::vector<T>> known;
  const std::scoped_lock lock(mutex);
  std::vector<T>& sums = known[size];
  if (sums.empty()) sums = sums_in_tree<T>(0, size, terms_of);
  return sums;
}

template <typename T>
std::string differs(const std::vector<T>& got, std::int64_t i, T want, const char* what) {
  const T element = got[static_cast<std::size_t>(i)];
  return element == want ? "" : fmt::format("{}: element {} of {} is {}, should be {}", what, i, got.size(), element, want);
}

template <typename T>
std::string all_reduce_sums(Communicator& all) {
  const std::vector<T>& sums = sums_of_ranks<T>(all.size());
  for (const std::int64_t count : kCounts) {
    std::vector<T> first = values<T>(all.rank(), count), second = values<T>(all.rank(), count / 2);
    all.all_reduce(std::vector<ExchangedTensor>{tensor_of(first), tensor_of(second)});
    for (std::int64_t i = 0; i < count; ++i)
      for (const auto* got : {&first, &second})
        if (i < static_cast<std::int64_t>(got->size()))
          if (std::string wrong = differs(*got, i, sums[static_cast<std::size_t>(i)], "all_reduce"); not wrong.empty()) return wrong;
  }
  return "";
}

template <typename T>
std::string reduce_scatter_then_all_gather(Communicator& all) {
  const std::vector<T>& sums = sums_of_ranks<T>(all.size());
  for (const std::int64_t count : kCounts) {
    std::vector<T> elements = values<T>(all.rank(), count);
    const ExchangedTensor tensor = tensor_of(elements);
    all.reduce_scatter({&tensor, 1});
    const RangePiece own = piece_of(count, all.size(), all.rank());
    for (std::int64_t i = 0; i < count; ++i) {
      const bool is_own = own.begin <= i and i < own.end;
      if (std::string wrong = differs(elements, i, is_own ? sums[static_cast<std::size_t>(i)] : value<T>(all.rank(), i), "reduce_scatter"); not wrong.empty()) return wrong;
    }
    all.all_gather({&tensor, 1});
    for (std::int64_t i = 0; i < count; ++i)
      if (std::string wrong = differs(elements, i, sums[static_cast<std::size_t>(i)], "all_gather"); not wrong.empty()) return wrong;
  }
  return "";
}

/// The codes of this rank's elements.
std::vector<std::uint16_t> stored_as_bf16(int rank, std::int64_t count) {
  std::vector<std::uint16_t> codes(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) write_storage(DType::kBF16, &codes[static_cast<std::size_t>(i)], value<float>(rank, i));
  return codes;
}

/// What of them travels.
std::vector<float> rounded_to_bf16(int rank) {
  std::vector<float> rounded;
  for (const std::uint16_t code : stored_as_bf16(rank, kMostElements)) rounded.push_back(read_storage(DType::kBF16, &code));
  return rounded;
}

/// Each sum is rounded once, and is the same everywhere.
std::string bf16_is_added_up_in_f32(Communicator& all) {
  const std::vector<float>&f32_sums = sums_of_ranks<float>(all.size()), &sums = sums_of_ranks<float, rounded_to_bf16>(all.size());
  const auto sum = [&](std::int64_t i) {
    std::uint16_t code = 0;
    write_storage(DType::kBF16, &code, sums[static_cast<std::size_t>(i)]);
    return code;
  };
  for (const std::int64_t count : kCounts) {
    std::vector<std::uint16_t> whole = stored_as_bf16(all.rank(), count), parts = whole;
    std::vector<float> beside = values<float>(all.rank(), count / 2);
    const ExchangedTensor scattered = {DType::kBF16, count, parts.data()};
    all.all_reduce(std::vector<ExchangedTensor>{{DType::kBF16, count, whole.data()}, tensor_of(beside)});
    all.reduce_scatter({&scattered, 1});
    const RangePiece own = piece_of(count, all.size(), all.rank());
    for (std::int64_t i = own.begin; i < own.end; ++i)
      if (std::string wrong = differs(parts, i, sum(i), "reduce_scatter of bf16"); not wrong.empty()) return wrong;
    all.all_gather({&scattered, 1});
    for (std::int64_t i = 0; i < count; ++i)
      for (const auto* got : {&whole, &parts})
        if (std::string wrong = differs(*got, i, sum(i), "all_reduce of bf16"); not wrong.empty()) return wrong;
    for (std::int64_t i = 0; i < count / 2; ++i)
      if (std::string wrong = differs(beside, i, f32_sums[static_cast<std::size_t>(i)], "all_reduce beside bf16"); not wrong.empty()) return wrong;
  }
  return "";
}

std::string broadcast_from_each(Communicator& all) {
  for (int root = 0; root < all.size(); ++root)
    for (const std::int64_t count : kCounts) {
      std::vector<float> elements = values<float>(all.rank(), count);
      std::vector<std::int64_t> numbers = values<std::int64_t>(all.rank(), count / 3);
      all.broadcast(std::vector<ExchangedTensor>{tensor_of(elements), tensor_of(numbers)}, root);
      for (std::int64_t i = 0; i < count; ++i)
        if (std::string wrong = differs(elements, i, value<float>(root, i), "broadcast"); not wrong.empty()) return wrong;
      for (std::int64_t i = 0; i < count / 3; ++i)
        if (std::string wrong = differs(numbers, i, value<std::int64_t>(root, i), "broadcast"); not wrong.empty()) return wrong;
    }
  return "";
}

std::string nothing_at_all(Communicator& all) {
  all.all_reduce({});
  all.reduce_scatter({});
  all.all_gather({});
  all.broadcast({}, 0);
  all.barrier();
  return "";
}

/// One after the other, without anything between them that would let the replicas wait for each other.
std::string many_small_ones(Communicator& all) {
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::int32_t> element = {all.rank() + round};
    const ExchangedTensor tensor = tensor_of(element);
    all.all_reduce({&tensor, 1});
    const std::int32_t want = all.size() * (all.size() - 1) / 2 + all.size() * round;
    if (std::string wrong = differs(element, 0, want, "all_reduce"); not wrong.empty()) return wrong;
  }
  return "";
}

/// The last case: nobody can exchange anything after it.
std::string failure_is_told(Communicator& all) {
  if (all.size() == 1) return "";
  const int failing = all.size() / 2;
  if (all.rank() == failing) {
    all.fail("its disk is full");
    return "";
  }
  try {
    for (int i = 0; i < 1'000'000; ++i) all.barrier();
  } catch (const Error& error) {
    const std::string said = error.what();
    if (error.diags().front().code != Code::kPeer) return "another code: " + said;
    return said.find(fmt::format(" {} ", failing)) != std::string::npos and said.find("its disk is full") != std::string::npos ? "" : "neither the rank nor why: " + said;
  }
  return "nobody was told";
}

const ConformanceCase kCases[] = {
    {"all_reduce sums f32 in the order of the tree", all_reduce_sums<float>},
    {"all_reduce sums f64 in the order of the tree", all_reduce_sums<double>},
    {"all_reduce sums i32", all_reduce_sums<std::int32_t>},
    {"all_reduce sums i64", all_reduce_sums<std::int64_t>},
    {"reduce_scatter and all_gather of f32", reduce_scatter_then_all_gather<float>},
    {"reduce_scatter and all_gather of i64", reduce_scatter_then_all_gather<std::int64_t>},
    {"bf16 travels, and is added up in f32", bf16_is_added_up_in_f32},
    {"broadcast from every rank", broadcast_from_each},
    {"nothing to exchange", nothing_at_all},
    {"many small ones", many_small_ones},
    {"a failure is told to all", failure_is_told},
};

}  // namespace

std::span<const ConformanceCase> conformance_cases() { return kCases; }

}  // namespace hone::test
