#include "base/bind_symbols.h"

#include <fmt/format.h>

#include <optional>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

namespace {

/// dim = factor * symbol + rest, if it is exactly that.
struct Linear {
  std::int64_t factor = 0;
  std::int64_t rest = 0;
};

std::optional<Linear> linear_in(const Dim& dim, const std::string& symbol) {
  try {
    const Dim at_one = dim.substitute({{symbol, 1}}), at_two = dim.substitute({{symbol, 2}});
    if (not at_one.is_constant() or not at_two.is_constant()) return std::nullopt;
    const std::int64_t factor = (at_two - at_one).value(), rest = (at_one - Dim(factor)).value();
    const bool exact = dim == Dim(factor) * Dim::symbol(symbol) + rest;
    return exact and factor != 0 ? std::optional(Linear{factor, rest}) : std::nullopt;
  } catch (const Error&) {  // a floordiv that divides by the symbol
    return std::nullopt;
  }
}

std::string bound_text(const Dim& dim, const DimBindings& bindings) {
  std::string text;
  for (const std::string& symbol : dim.symbols()) text += fmt::format("{}{} is {}", text.empty() ? "" : ", ", symbol, bindings.find(symbol)->second);
  return text;
}

[[noreturn]] void fail(const Shape& declared, std::span<const std::int64_t> actual, std::string_view what, const std::string& why) {
  throw Error(Code::kDataShape, fmt::format("{} has shape {}, expected [{}]: {}", what, shape_text(actual), to_string(declared), why));
}

}  // namespace

bool bind_symbols(const Shape& declared, std::span<const std::int64_t> actual, DimBindings& bindings, std::string_view what) {
  if (declared.size() != actual.size()) fail(declared, actual, what, fmt::format("{} axes instead of {}", actual.size(), declared.size()));
  bool all_known = true;
  for (std::size_t axis = 0; axis < declared.size(); ++axis) {
    const Dim& dim = declared[axis];
    std::map<std::string, Dim, std::less<>> known;
    std::vector<std::string> unknown;
    for (const std::string& symbol : dim.symbols()) {
      if (const auto found = bindings.find(symbol); found != bindings.end()) known.emplace(symbol, found->second);
      else unknown.push_back(symbol);
    }
    if (unknown.empty()) {
      if (const std::int64_t expected = dim.evaluate(bindings); expected != actual[axis]) {
        const std::string why = bound_text(dim, bindings);
        fail(declared, actual, what, fmt::format("axis {} must be {}{}", axis, expected, why.empty() ? "" : ", as " + why));
      }
      continue;
    }
    const std::optional<Linear> linear = unknown.size() == 1 ? linear_in(dim.substitute(known), unknown[0]) : std::nullopt;
    if (not linear) {
      all_known = false;
      continue;
    }
    const std::int64_t product = actual[axis] - linear->rest;
    if (product % linear->factor != 0 or product / linear->factor < 0)
      fail(declared, actual, what, fmt::format("no {} of at least 0 makes axis {}, {}, be {}", unknown[0], axis, dim.text(), actual[axis]));
    bindings.emplace(unknown[0], product / linear->factor);
  }
  return all_known;
}

}  // namespace hone
