// Sorting along an axis.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/diag.h"
#include "base/by_dtype.h"
#include "host/rules.h"
#include "host/rows.h"

namespace hone::host {

namespace {

/// Does `a` come before `b`? NaN counts as the largest.
template <typename T>
bool is_larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) or std::isnan(b)) return std::isnan(a) and not std::isnan(b);
  }
  return a > b;
}

void run_arg_top_k(const HostAttributes& attributes, std::span<const HostTensor> operands, std::span<const HostTensor> results, HostScratch& scratch) {
  const Rows from(operands[0].shape, attributes.integer("axis")), to(results[0].shape, attributes.integer("axis"));
  const bool largest = not attributes.flag("smallest");
  if (to.length > from.length) throw Error(Code::kDataRange, "arg_top_k: " + std::to_string(to.length) + " elements are asked of an axis of " + std::to_string(from.length));
  by_dtype(operands[0].dtype, [&]<typename T>() {
    const std::span<T> x = operands[0].elements<T>();
    const std::span<std::int64_t> positions = results[0].elements<std::int64_t>();
    const std::span<std::int64_t> order = scratch.take<std::int64_t>(static_cast<std::size_t>(from.length));
    for (std::int64_t row = 0; row < from.count; ++row) {
      const auto at = [&](std::int64_t j) { return x[static_cast<std::size_t>(from.start(row) + j * from.stride)]; };
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + to.length, order.end(), [&](std::int64_t a, std::int64_t b) {
        if (is_larger(at(a), at(b))) return largest;
        if (is_larger(at(b), at(a))) return not largest;
        return a < b;
      });
      for (std::int64_t j = 0; j < to.length; ++j) positions[static_cast<std::size_t>(to.start(row) + j * to.stride)] = order[static_cast<std::size_t>(j)];
    }
  });
}

/// The groups of equal slices along an axis.
struct Groups {
  std::span<std::int64_t> order;   ///< all slices, ascending; equal ones as they come
  std::span<std::size_t> starts;   ///< where each group begins in `order`
};

/// Slices are compared element by element, row-major; NaN equals NaN and counts as the largest.
template <typename T>
Groups groups_of(std::span<const T> x, const Rows& rows, HostScratch& scratch) {
  const auto is_before = [&](std::int64_t a, std::int64_t b, bool if_equal) {
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const T left = x[static_cast<std::size_t>(rows.start(row) + a * rows.stride)], right = x[static_cast<std::size_t>(rows.start(row) + b * rows.stride)];
      if (is_larger(left, right)) return false;
      if (is_larger(right, left)) return true;
    }
    return if_equal;
  };
  const auto length = static_cast<std::size_t>(rows.length);
  const Groups room{.order = scratch.take<std::int64_t>(length), .starts = scratch.take<std::size_t>(length)};
  std::iota(room.order.begin(), room.order.end(), 0);
  std::sort(room.order.begin(), room.order.end(), [&](std::int64_t a, std::int64_t b) { return is_before(a, b, a < b); });
  std::size_t groups = 0;
  for (std::size_t i = 0; i < length; ++i)
    if (i == 0 or is_before(room.order[i - 1], room.order[i], false)) room.starts[groups++] = i;
  return {room.order, room.starts.first(groups)};
}

void run_unique_positions(const HostAttributes& attributes, std::span<const HostTensor> operands, std::span<const HostTensor> results, HostScratch& scratch) {
  Groups groups;
  const Rows rows(operands[0].shape, attributes.integer("axis"));
  by_dtype(operands[0].dtype, [&]<typename T>() { groups = groups_of<T>(operands[0].elements<T>(), rows, scratch); });
  const std::span<std::size_t> shown = scratch.take<std::size_t>(groups.starts.size());
  std::iota(shown.begin(), shown.end(), 0);
  const auto first = [&](std::size_t group) { return groups.order[groups.starts[group]]; };
  if (not attributes.flag("sorted")) std::sort(shown.begin(), shown.end(), [&](std::size_t a, std::size_t b) { return first(a) < first(b); });
  const auto wanted = [&](std::size_t i) { return i < results.size() and results[i].data != nullptr ? results[i].elements<std::int64_t>() : std::span<std::int64_t>(); };
  const std::span<std::int64_t> firsts = wanted(0), inverse = wanted(1), counts = wanted(2), count = wanted(3);
  if (not count.empty()) count[0] = static_cast<std::int64_t>(shown.size());
  for (const std::span<std::int64_t> of_groups : {firsts, counts}) std::ranges::fill(of_groups, 0);  // behind the last one
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::size_t begin = groups.starts[shown[i]], end = shown[i] + 1 < groups.starts.size() ? groups.starts[shown[i] + 1] : groups.order.size();
    if (not firsts.empty()) firsts[i] = first(shown[i]);
    if (not counts.empty()) counts[i] = static_cast<std::int64_t>(end - begin);
    for (std::size_t k = begin; k < end and not inverse.empty(); ++k) inverse[static_cast<std::size_t>(groups.order[k])] = static_cast<std::int64_t>(i);
  }
}

std::string fits_top_k(const HostAttributes& attributes, HostTypes operands, HostTypes results) {
  if (std::string why = why_no_axis(attributes, *operands[0]); not why.empty()) return why;
  HostTensor like = *operands[0];
  const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
  like.shape[axis] = results[0]->shape[axis];  // how many are asked is the data's to say no to
  return why_no_same_shape("positions", results[0], like);
}

std::string fits_unique(const HostAttributes& attributes, HostTypes operands, HostTypes results) {
  if (std::string why = why_no_axis(attributes, *operands[0]); not why.empty()) return why;
  const std::int64_t slices = operands[0]->shape[static_cast<std::size_t>(attributes.integer("axis"))];
  return first_of({why_no_count("firsts", at(results, 0), slices), why_no_count("inverse", at(results, 1), slices), why_no_count("counts", at(results, 2), slices), why_no_count("count", at(results, 3), 1)});
}

constexpr TensorRule slices_rule(std::string_view name) { return {.name = name, .types = kPositions, .optional = true}; }

}  // namespace

constinit const HostRules arg_top_k_rules = {
    .call = {.operands = {{.name = "x", .types = kHeldTypes, .least_rank = 1}}, .results = {{.name = "positions", .types = kPositions, .rank_like = 0}}, .attributes = {kAxisRule, flag_rule("smallest")}},
    .fits = fits_top_k};

constinit const HostRules unique_positions_rules = {.call = {.operands = {{.name = "x", .types = kHeldTypes, .least_rank = 1}},
                                                             .results = {slices_rule("firsts"), slices_rule("inverse"), slices_rule("counts"), slices_rule("count")},
                                                             .attributes = {kAxisRule, flag_rule("sorted")}},
                                                    .fits = fits_unique};

constinit const HostFunction arg_top_k = {
    .name = "arg_top_k",
    .doc = "positions of the largest (or smallest) elements of each row along `axis`, as many as the result has, in order; of equal ones the first",
    .run = run_arg_top_k,
};

constinit const HostFunction unique_positions = {
    .name = "unique_positions",
    .doc = "the distinct slices along `axis`: the first of each, ascending if `sorted`; which of them each slice is; how often each comes; and how many they are",
    .run = run_unique_positions,
};

}  // namespace hone::host
