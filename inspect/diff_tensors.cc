// Weights and states, element by element.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/text.h"
#include "inspect/diff.h"

namespace hone {

namespace {

std::string type_text(const StoredTensor& tensor) { return fmt::format("{}{}", to_string(tensor.dtype), shape_text(tensor.shape)); }

std::vector<std::int64_t> index_of(std::int64_t element, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis]) index[axis] = element % shape[axis];
  return index;
}

/// Nothing where they are the same, bit by bit.
std::optional<Difference::Elements> compare_elements(const Tensor& a, const Tensor& b) {
  if (std::ranges::equal(a.bytes(), b.bytes())) return std::nullopt;
  Difference::Elements elements{.all = a.element_count()};
  double squares = 0, own = 0;
  std::int64_t at = -1;
  const std::size_t size = size_of(a.dtype());
  for (std::int64_t i = 0; i < elements.all; ++i) {
    const double before = a.at(i), after = b.at(i);
    own += before * before;
    if (std::memcmp(a.bytes().data() + static_cast<std::size_t>(i) * size, b.bytes().data() + static_cast<std::size_t>(i) * size, size) == 0) continue;
    ++elements.differing;
    const double difference = std::fabs(after - before);
    squares += difference * difference;
    const bool is_larger = at < 0 or difference > elements.largest or (std::isnan(difference) and not std::isnan(elements.largest));
    if (not is_larger) continue;
    at = i, elements.largest = difference, elements.before = before, elements.after = after;
  }
  elements.norm = std::sqrt(squares);
  elements.relative = elements.norm / std::sqrt(own);
  elements.at = index_of(at, {a.shape().begin(), a.shape().end()});
  return elements;
}

}  // namespace

void compare_tensors(std::string_view kind, const std::vector<StoredTensor>& a, const std::vector<StoredTensor>& b, std::vector<Difference>& out) {
  using Change = Difference::Change;
  std::map<std::string, const StoredTensor*> after;
  for (const StoredTensor& tensor : b) after[tensor.name] = &tensor;
  for (const StoredTensor& tensor : a) {
    const auto found = after.find(tensor.name);
    Difference difference{.kind = std::string(kind), .name = tensor.name, .before = "", .after = ""};
    if (found == after.end()) {
      difference.change = Change::kRemoved, difference.before = type_text(tensor);
    } else {
      const StoredTensor& other = *found->second;
      after.erase(found);
      if (tensor.dtype != other.dtype or tensor.shape != other.shape) difference.before = type_text(tensor), difference.after = type_text(other);
      else if (not(difference.elements = compare_elements(tensor.read(), other.read()))) continue;
      else difference.detail = type_text(tensor);
    }
    out.push_back(std::move(difference));
  }
  for (const StoredTensor& tensor : b)
    if (after.contains(tensor.name)) out.push_back({.kind = std::string(kind), .change = Change::kAdded, .name = tensor.name, .before = "", .after = type_text(tensor)});
}

}  // namespace hone
