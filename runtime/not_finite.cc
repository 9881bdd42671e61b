#include "runtime/not_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "runtime/feeds.h"
#include "runtime/plan/step_name.h"

namespace hone {

namespace {

constexpr std::size_t kListedOperands = 6;

void take(double value, std::int64_t position, ValueRange* range) {
  if (std::isfinite(value)) {
    range->low = std::min(range->low, value);
    range->high = std::max(range->high, value);
    return;
  }
  ++(std::isnan(value) ? range->nans : range->infinities);
  if (range->first < 0) range->first = position;
}

std::string numbers_text(const ValueRange& range) {
  std::string text = range.low <= range.high ? fmt::format("{:.6g} to {:.6g}", range.low, range.high) : "";
  const auto add = [&](std::int64_t count, const char* word) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  };
  add(range.nans, "nan");
  add(range.infinities, "inf");
  return text.empty() ? "nothing" : text;
}

std::string range_text(const ValueRange& range) {
  const std::string name = range.name.empty() ? "a value" : quoted(range.name);
  return fmt::format("{} {}{}: {}", name, to_string(range.tensor.dtype), shape_text(range.tensor.shape), numbers_text(range));
}

/// "row 3, element 17" of the first bad element.
std::string place_text(const ValueRange& range) {
  std::int64_t row = 1;
  for (std::size_t i = 1; i < range.tensor.shape.size(); ++i) row *= range.tensor.shape[i];
  if (range.tensor.shape.empty() or row == 0) return "it";
  return fmt::format("row {} of it (element {} of the row)", range.first / row, range.first % row);
}

/// The origin names one node, and what makes the number may be another one that the kernel computes with it.
std::string origin_of(const plan::Step& step) {
  constexpr std::size_t kMostCharacters = 300;
  return step.nodes.empty() ? step.origin : fmt::format("{}; its nodes: {}", step.origin, printable(join(step.nodes, ", "), kMostCharacters));
}

void add_step(std::vector<std::string>* notes, const NotFiniteStep& step, const char* word) {
  notes->push_back(fmt::format("the first {} is made by {}{}, which gives {}", word, step.what, step.origin.empty() ? "" : " (" + step.origin + ")", range_text(step.result)));
  for (std::size_t i = 0; i < std::min(step.operands.size(), kListedOperands); ++i) notes->push_back("it reads " + range_text(step.operands[i]));
  if (step.operands.size() > kListedOperands) notes->push_back(fmt::format("and {} more, all finite or listed above", step.operands.size() - kListedOperands));
}

}  // namespace

std::optional<ValueRange> range_of(const std::string& name, const TensorView& tensor) {
  if (not is_float(tensor.dtype)) return std::nullopt;
  ValueRange range{.name = name, .tensor = tensor, .low = std::numeric_limits<double>::infinity(), .high = -std::numeric_limits<double>::infinity()};
  const std::int64_t count = checked_element_count(tensor.shape);
  if (tensor.dtype == DType::kF32) {
    for (std::int64_t i = 0; i < count; ++i) take(static_cast<const float*>(tensor.data)[i], i, &range);
  } else {
    const Tensor copy = copy_of(tensor);
    for (std::int64_t i = 0; i < count; ++i) take(copy.at(i), i, &range);
  }
  return range;
}

bool are_finite(const TensorView& tensor) {
  if (tensor.dtype != DType::kF32) {
    const auto range = range_of("", tensor);
    return not range or range->is_finite();
  }
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t largest = 0;  // of exponents: a vector's work
  const auto* const bytes = static_cast<const std::byte*>(tensor.data);
  const auto count = static_cast<std::size_t>(checked_element_count(tensor.shape));
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
    largest = std::max(largest, bits & kExponent);
  }
  return largest < kExponent;
}

void NotFiniteFinder::before(const WatchedStep& step) {
  operands_.clear();
  if (report.first_nan) return;
  for (const auto& [name, tensor] : step.operands)
    if (auto range = range_of(name, tensor)) operands_.push_back(std::move(*range));
  std::stable_partition(operands_.begin(), operands_.end(), [](const ValueRange& range) { return not range.is_finite(); });
}

void NotFiniteFinder::after(const WatchedStep& step) {
  if (report.first_nan) return;
  for (const auto& [name, tensor] : step.results) {
    const auto range = range_of(name, tensor);
    if (not range or range->is_finite()) continue;
    const NotFiniteStep found = {.what = name_of(*step.step), .origin = origin_of(*step.step), .operands = operands_, .result = *range};
    if (range->nans > 0 and not report.first_nan) report.first_nan = found;
    if (range->infinities > 0 and not report.first_infinity) report.first_infinity = found;
  }
}

std::vector<std::string> sentences(const NotFiniteReport& report) {
  std::vector<std::string> notes;
  for (const ValueRange& feed : report.feeds) notes.push_back(fmt::format("the data are not finite: {} of this batch; first in {}", range_text(feed), place_text(feed)));
  for (const ValueRange& weight : report.weights) notes.push_back(fmt::format("the weight or state {} was not finite before the step", range_text(weight)));
  if (not notes.empty()) return notes;  // all else follows from it
  if (report.first_infinity and (not report.first_nan or report.first_infinity->result.nans == 0)) add_step(&notes, *report.first_infinity, "inf");
  if (report.first_nan) add_step(&notes, *report.first_nan, "nan");
  return notes;
}

}  // namespace hone
