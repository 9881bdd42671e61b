// Choosing elements by what they hold.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/by_dtype.h"
#include "host/rules.h"

namespace hone::host {

namespace {

/// The positions, then 0s, and their number, as far as they are wanted. `out`: as many as there can be; none where nobody reads them.
struct Positions {
  std::span<std::int64_t> out;
  std::size_t count = 0;

  explicit Positions(const HostTensor& result) : out(result.data == nullptr ? std::span<std::int64_t>() : result.elements<std::int64_t>()) {}
  void add(std::int64_t position) {
    if (not out.empty()) out[count] = position;
    ++count;
  }
  /// A position is so many numbers.
  void finish(const HostTensor& number, std::size_t numbers = 1) {
    if (number.data != nullptr) number.elements<std::int64_t>()[0] = static_cast<std::int64_t>(count / numbers);
    if (not out.empty()) std::ranges::fill(out.subspan(count), 0);
  }
};

void run_nonzero_positions(const HostAttributes&, std::span<const HostTensor> operands, std::span<const HostTensor> results, HostScratch&) {
  Positions positions(results[0]);
  by_dtype(operands[0].dtype, [&]<typename T>() {
    const std::span<T> x = operands[0].elements<T>();
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] != T(0)) positions.add(static_cast<std::int64_t>(i));
  });
  positions.finish(results[1]);
}

/// A rectangle by its lower and upper corner.
template <typename T>
struct Box {
  std::array<T, 2> low, high;

  static Box of(const T* box, bool is_center) {
    if (is_center) return {{box[0] - box[2] / 2, box[1] - box[3] / 2}, {box[0] + box[2] / 2, box[1] + box[3] / 2}};
    return {{std::min(box[0], box[2]), std::min(box[1], box[3])}, {std::max(box[0], box[2]), std::max(box[1], box[3])}};
  }
  T area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
  /// Intersection over union; 0 where there is no intersection.
  T overlap(const Box& other) const {
    T shared = 1;
    for (std::size_t i = 0; i < 2; ++i) shared *= std::max(T(0), std::min(high[i], other.high[i]) - std::max(low[i], other.low[i]));
    return shared > 0 ? shared / (area() + other.area() - shared) : 0;
  }
};

template <typename T>
struct Suppression {
  std::int64_t most = 0;
  T overlap = 0, score = 0;
  bool has_score = false;

  /// The boxes of one class that stay, in `order`, which has room for all.
  std::span<const std::size_t> chosen(std::span<const Box<T>> boxes, std::span<const T> scores, std::span<std::size_t> order) const {
    std::size_t candidates = 0, kept = 0;
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (has_score ? scores[i] > score : not std::isnan(scores[i])) order[candidates++] = i;
    std::ranges::sort(order.first(candidates), [&](std::size_t a, std::size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
    for (std::size_t i = 0; i < candidates and static_cast<std::int64_t>(kept) < most; ++i) {  // what stays takes a place that was looked at
      const Box<T>& box = boxes[order[i]];
      if (std::ranges::none_of(order.first(kept), [&](std::size_t k) { return box.overlap(boxes[k]) > overlap; })) order[kept++] = order[i];
    }
    return order.first(kept);
  }
};

template <typename T>
Suppression<T> suppression_of(std::span<const HostTensor> operands) {
  const auto given = [&](std::size_t i) { return i < operands.size() and operands[i].data != nullptr and operands[i].element_count() > 0; };
  Suppression<T> made;
  if (given(2)) made.most = operands[2].elements<std::int64_t>()[0];
  if (given(3)) made.overlap = operands[3].elements<T>()[0];
  made.has_score = given(4);
  if (made.has_score) made.score = operands[4].elements<T>()[0];
  return made;
}

void run_non_max_suppression(const HostAttributes& attributes, std::span<const HostTensor> operands, std::span<const HostTensor> results, HostScratch& scratch) {
  Positions found(results[0]);  // (batch, class, box)
  const auto find = [&]<typename T>(T) {
    const Suppression<T> suppression = suppression_of<T>(operands);
    const std::int64_t classes = operands[1].shape[1];
    const auto count = static_cast<std::size_t>(operands[1].shape[2]);
    const std::span<Box<T>> boxes = scratch.take<Box<T>>(count);
    const std::span<std::size_t> order = scratch.take<std::size_t>(count);
    for (std::int64_t batch = 0; batch < operands[1].shape[0]; ++batch) {
      const std::span<const T> corners = operands[0].elements<T>().subspan(static_cast<std::size_t>(batch) * count * 4, count * 4);
      for (std::size_t i = 0; i < count; ++i) boxes[i] = Box<T>::of(&corners[4 * i], attributes.flag("center_box"));
      for (std::int64_t kind = 0; kind < classes; ++kind) {
        const auto row = static_cast<std::size_t>(batch * classes + kind);
        for (const std::size_t box : suppression.chosen(boxes, operands[1].elements<T>().subspan(row * count, count), order))
          for (const std::int64_t number : {batch, kind, static_cast<std::int64_t>(box)}) found.add(number);
      }
    }
  };
  if (operands[0].dtype == DType::kF64) find(double());
  else find(float());
  found.finish(results[1], 3);
}

std::string fits_non_max_suppression(const HostAttributes&, HostTypes operands, HostTypes results) {
  const HostTensor &boxes = *operands[0], &scores = *operands[1];
  if (boxes.shape[2] != 4) return "boxes that have not four numbers";
  if (boxes.shape[0] != scores.shape[0] or boxes.shape[1] != scores.shape[2]) return "boxes and scores of different batches or numbers of boxes";
  for (std::size_t i = 2; i < 5; ++i)
    if (std::string why = why_no_count("a number", at(operands, i), 1); not why.empty()) return why;
  return first_of({why_no_results(results, 2), why_no_count("positions", at(results, 0), 3 * scores.element_count()), why_no_count("count", at(results, 1), 1)});
}

constexpr TensorRule position_rule(std::string_view name) { return {.name = name, .types = kPositions, .optional = true}; }

}  // namespace

constinit const HostRules nonzero_positions_rules = {
    .call = {.operands = {{.name = "x", .types = kHeldTypes}}, .results = {position_rule("positions"), position_rule("count")}},
    .fits = [](const HostAttributes&, HostTypes operands, HostTypes results) {
      return first_of({why_no_results(results, 2), why_no_count("positions", at(results, 0), operands[0]->element_count()), why_no_count("count", at(results, 1), 1)});
    }};

constinit const HostRules non_max_suppression_rules = {
    .call = {.operands = {{.name = "boxes", .types = {DType::kF32, DType::kF64}, .least_rank = 3, .most_rank = 3},
                          {.name = "scores", .like = 0, .least_rank = 3, .most_rank = 3},
                          position_rule("most"),
                          {.name = "overlap", .like = 0, .optional = true},
                          {.name = "score", .like = 0, .optional = true}},
             .results = {position_rule("positions"), position_rule("count")},
             .attributes = {flag_rule("center_box")}},
    .fits = fits_non_max_suppression};

constinit const HostFunction nonzero_positions = {
    .name = "nonzero_positions",
    .doc = "positions of the elements that are not 0, in order, then 0s; and how many they are",
    .run = run_nonzero_positions,
};

constinit const HostFunction non_max_suppression = {
    .name = "non_max_suppression",
    .doc = "the boxes of each batch and class that no better one overlaps too much, as (batch, class, box), then 0s; and how many they are",
    .run = run_non_max_suppression,
};

}  // namespace hone::host
