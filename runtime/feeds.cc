#include "runtime/feeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/by_dtype.h"
#include "base/check.h"
#include "base/diag.h"
#include "base/dim_parts.h"
#include "base/tensor.h"
#include "base/text.h"

namespace hone {
namespace {

std::vector<std::string> names_of(const plan::Entry& entry) {
  std::vector<std::string> names;
  for (const plan::Feed& feed : entry.feeds) names.push_back(feed.name);
  return names;
}

[[noreturn]] void unknown_feed(const plan::Entry& entry, const std::string& name) {
  const std::vector<std::string> names = names_of(entry);
  std::vector<std::string> notes = {fmt::format("{} takes {}", entry.name, names.empty() ? "nothing" : printable(join(names, ", ")))};
  if (std::string hint = did_you_mean(name, names); not hint.empty()) notes.push_back(std::move(hint));
  throw Error(Code::kDataName, fmt::format("{} has no input {}", entry.name, quoted(name)), {}, std::move(notes));
}

void check_type(const plan::Feed& feed, const TensorView& tensor) {
  if (tensor.dtype != feed.dtype)
    throw Error(Code::kDataType, fmt::format("{} is {}, but {} is needed", quoted(feed.name), to_string(tensor.dtype), to_string(feed.dtype)), {},
                {"the elements are taken as they are: cast them first"});
  if (tensor.data == nullptr and checked_element_count(tensor.shape) > 0) throw Error(Code::kDataName, fmt::format("{} has no data", quoted(feed.name)), {}, {"its address is null"});
}

[[noreturn]] void out_of_bounds(const plan::Feed& feed, const TensorView& tensor, std::int64_t at, std::int64_t value) {
  std::vector<std::int64_t> index(tensor.shape.size());
  for (std::size_t axis = index.size(); axis-- > 0; at /= tensor.shape[axis]) index[axis] = at % tensor.shape[axis];
  std::string expected = fmt::format("from {} to {}", feed.bounds->first, feed.bounds->second - 1);
  if (feed.ignored) expected += fmt::format(", or {} to be ignored", *feed.ignored);
  throw Error(Code::kDataRange, fmt::format("{} at {} is {}; it must be {}", quoted(feed.name), shape_text(index), value, expected), {}, {"a number of a class or a row counts from 0"});
}

template <typename T>
void check_elements(const plan::Feed& feed, const TensorView& tensor) {
  const T* elements = static_cast<const T*>(tensor.data);
  const std::int64_t count = checked_element_count(tensor.shape);
  const auto [low, high] = *feed.bounds;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<std::int64_t>(elements[i]);  // a u64 beyond i64 becomes negative, and so out of bounds
    if (value >= low and value < high) continue;
    if (not feed.ignored or value != *feed.ignored) out_of_bounds(feed, tensor, i, value);
  }
}

std::string sizes_text(const DimBindings& sizes) {
  std::vector<std::string> pieces;
  for (const auto& [name, value] : sizes) pieces.push_back(fmt::format("{} = {}", printable(name), value));
  return join(pieces, ", ");
}

/// Solves for sizes: repeatedly, each extent with a single unknown symbol tells that symbol, if it is of the form a*N + b.
class SizeSolver {
 public:
  SizeSolver(const plan::Entry& entry, std::span<const TensorView* const> tensors) : entry_(entry), tensors_(tensors) {}

  DimBindings solve() {
    check_ranks();
    while (solve_more()) {}
    check_all();
    return std::move(sizes_);
  }

 private:
  [[noreturn]] void fail(std::size_t feed, std::vector<std::string> notes = {}) const {
    const plan::Feed& declared = entry_.feeds[feed];
    if (declared.shape.size() == tensors_[feed]->shape.size() + 1) notes.emplace_back("one sample, too, needs the axis of the batch in front");
    else if (notes.empty() and sizes_.empty()) notes.emplace_back("every letter is one size throughout a call; numbers are fixed");
    if (not sizes_.empty()) notes.push_back(fmt::format("where {}", sizes_text(sizes_)));
    throw Error(
        Code::kDataShape,
        fmt::format("{} has shape {}, but [{}] is needed", quoted(declared.name), shape_text(tensors_[feed]->shape), printable(to_string(declared.shape))), {},
        std::move(notes));
  }

  void check_ranks() const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::vector<std::int64_t>& found = tensors_[i]->shape;
      if (found.size() != entry_.feeds[i].shape.size() or std::any_of(found.begin(), found.end(), [](std::int64_t extent) { return extent < 0; })) fail(i);
    }
  }

  bool solve_more() {
    bool progress = false;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      for (std::size_t axis = 0; axis < tensors_[i]->shape.size(); ++axis) progress |= solve_one(i, axis);
    return progress;
  }

  bool solve_one(std::size_t feed, std::size_t axis) {
    const Dim& dim = entry_.feeds[feed].shape[axis];
    if (dim.is_constant()) return false;
    std::string unknown;
    for (std::string& symbol : dim.symbols()) {
      if (sizes_.contains(symbol)) continue;
      if (not unknown.empty()) return false;
      unknown = std::move(symbol);
    }
    if (unknown.empty()) return false;
    const auto at = [&](std::int64_t value) {
      DimBindings trial = sizes_;
      trial[unknown] = value;
      return dim.evaluate(trial);
    };
    const std::int64_t b = at(0), a = at(1) - b, extent = tensors_[feed]->shape[axis];
    if (a == 0 or at(2) != 2 * a + b or at(1009) != 1009 * a + b) return false;  // not a*N + b
    if ((extent - b) % a != 0 or (extent - b) / a < 0) fail(feed);
    sizes_[unknown] = (extent - b) / a;
    return true;
  }

  void check_all() const {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      for (std::size_t axis = 0; axis < tensors_[i]->shape.size(); ++axis) {
        const Dim& dim = entry_.feeds[i].shape[axis];
        for (const std::string& symbol : dim.symbols())
          if (not sizes_.contains(symbol)) fail(i, {fmt::format("{} cannot be told from the shapes", quoted(symbol))});
        if (dim.evaluate(sizes_) != tensors_[i]->shape[axis]) fail(i);
      }
    check_equations(entry_, sizes_);
  }

  const plan::Entry& entry_;
  std::span<const TensorView* const> tensors_;
  DimBindings sizes_;
};

}  // namespace

void match_feeds(const plan::Entry& entry, NamedFeeds feeds, std::span<const TensorView*> matched) {
  static constexpr std::int64_t kNone = 0;
  static const TensorView kWholeBatch(DType::kI64, {}, &kNone);
  std::fill(matched.begin(), matched.end(), nullptr);
  for (const std::pair<std::string, TensorView>& given : feeds) {
    const std::string& name = given.first;
    const TensorView& tensor = given.second;
    const auto declared = std::find_if(entry.feeds.begin(), entry.feeds.end(), [&name](const plan::Feed& feed) { return feed.name == name; });
    if (declared == entry.feeds.end()) unknown_feed(entry, name);
    const TensorView*& slot = matched[static_cast<std::size_t>(declared - entry.feeds.begin())];
    if (slot != nullptr) throw Error(Code::kDataName, fmt::format("{} is given twice", quoted(name)), {}, {"name each input once"});
    check_type(*declared, tensor);
    slot = &tensor;
  }
  for (std::size_t i = 0; i < matched.size(); ++i)
    if (matched[i] == nullptr and entry.feeds[i].kind == plan::Feed::Kind::kFirstSample) matched[i] = &kWholeBatch;
    else if (matched[i] == nullptr) throw Error(Code::kDataName, fmt::format("{} needs {}, which is not given", entry.name, quoted(entry.feeds[i].name)), {},
                                                     {fmt::format("it takes {}", printable(join(names_of(entry), ", ")))});
}

void check_bounds(const plan::Feed& feed, const TensorView& tensor) {
  if (not feed.bounds) return;
  HONE_CHECK(is_integer(feed.dtype), "a feed that is no integer has bounds");  // plan::check
  by_dtype(feed.dtype, [&]<typename T>() { check_elements<T>(feed, tensor); });
}

namespace {

/// Is an expression the min, or max, of x and a limit?
bool limits(DimParts::Kind kind, const Dim& expression, const Dim& x) {
  const DimParts parts = parts_of(expression);
  return parts.kind == kind and (parts.a == x or parts.b == x);
}

}  // namespace

void check_equations(const plan::Entry& entry, const DimBindings& sizes) {
  const auto is_known = [&sizes](const Dim& dim) {
    const std::vector<std::string> symbols = dim.symbols();
    return std::all_of(symbols.begin(), symbols.end(), [&sizes](const std::string& symbol) { return sizes.contains(symbol); });
  };
  for (const auto& [left, right] : entry.equations) {
    if (not is_known(left) or not is_known(right)) continue;  // of a number that is read later
    const std::int64_t a = left.evaluate(sizes), b = right.evaluate(sizes);
    if (a == b) continue;
    std::string what = limits(DimParts::Kind::kMin, left, right)   ? fmt::format("{} is {}, and can be {} at most", printable(right.text()), b, a)
                       : limits(DimParts::Kind::kMax, left, right) ? fmt::format("{} is {}, and can be {} at least", printable(right.text()), b, a)
                                                    : fmt::format("{} must be equal to {}, but they are {} and {}", printable(left.text()), printable(right.text()), a, b);
    throw Error(Code::kDataShape, std::move(what), {}, {fmt::format("where {}", sizes_text(sizes))});
  }
}

Tensor copy_of(const TensorView& view) {
  const std::size_t bytes = static_cast<std::size_t>(checked_element_count(view.shape)) * size_of(view.dtype);
  return Tensor::copy(view.dtype, view.shape, {static_cast<const std::byte*>(view.data), bytes});
}

DimBindings bind_sizes(const plan::Entry& entry, NamedFeeds feeds) {
  std::vector<const TensorView*> matched(entry.feeds.size());
  match_feeds(entry, feeds, matched);
  return SizeSolver(entry, matched).solve();
}

}  // namespace hone
