// Operators that take or give sequences and optionals. None of them computes: they choose among tensors, so positions must be known when compiling.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

constexpr std::size_t kMostItems = 4096;

Item sequence(const ImportNode& node, std::vector<Val> elements) {
  if (elements.size() > kMostItems) node.fail(Code::kTooLarge, fmt::format("a sequence of {} tensors; the limit is {}", elements.size(), kMostItems));
  for (const Val& element : elements)
    node.require(element.dtype() == elements[0].dtype(), Code::kType,
                 fmt::format("a sequence cannot hold both {} and {}", to_string(elements[0].dtype()), to_string(element.dtype())));
  return Item::sequence(std::move(elements));
}

/// The position in operand `i`, counted from the end if negative, at most `last`.
std::size_t position(const ImportNode& node, std::size_t i, std::size_t count, std::size_t last) {
  const Ints numbers = node.numbers(i, "position");
  node.require(numbers.size() == 1, Code::kShape, fmt::format("input {} (position) must have one element, and has {}", i, numbers.size()));
  const std::int64_t at = numbers[0] < 0 ? numbers[0] + static_cast<std::int64_t>(count) : numbers[0];
  if (at < 0 or at > static_cast<std::int64_t>(last))
    node.fail(Code::kBadAttribute, fmt::format("position {} of a sequence of {} tensors", numbers[0], count));
  return static_cast<std::size_t>(at);
}

std::vector<Item> import_construct(const ImportNode& node) { return {sequence(node, node.rest(0))}; }
std::vector<Item> import_empty(const ImportNode&) { return {Item::sequence({})}; }

/// At the end unless a position says otherwise.
std::vector<Item> import_insert(const ImportNode& node) {
  std::vector<Val> elements = node.sequence(0);
  const std::size_t at = node.has(2) ? position(node, 2, elements.size(), elements.size()) : elements.size();
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), node.x(1));
  return {sequence(node, std::move(elements))};
}

/// The last one unless a position says otherwise.
std::vector<Item> import_erase(const ImportNode& node) {
  std::vector<Val> elements = node.sequence(0);
  node.require(not elements.empty(), Code::kBadAttribute, "there is nothing to erase in an empty sequence");
  const std::size_t at = node.has(1) ? position(node, 1, elements.size(), elements.size() - 1) : elements.size() - 1;
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at));
  return {Item::sequence(std::move(elements))};
}

std::vector<Item> import_at(const ImportNode& node) {
  const std::vector<Val>& elements = node.sequence(0);
  node.require(not elements.empty(), Code::kBadAttribute, "the sequence is empty");
  return {elements[position(node, 1, elements.size(), elements.size() - 1)]};
}

std::vector<Item> import_length(const ImportNode& node) {
  return {node.builder().constant(Tensor::scalar(static_cast<std::int64_t>(node.sequence(0).size())))};
}

/// The lengths of the parts: given one by one, one for all (the last part may be shorter), or 1.
std::vector<Dim> part_sizes(const ImportNode& node, const Dim& extent) {
  const bool one_by_one = node.has(1) and node.x(1).rank() == 1;
  if (one_by_one) return shape_of(node.numbers(1, "split"));
  const Dim size = node.has(1) ? Dim(node.numbers(1, "split").at(0)) : Dim(1);
  node.require(size.value() > 0, Code::kBadAttribute, fmt::format("parts of length {}", size.text()));
  if (not extent.is_constant())
    node.fail(Code::kDynamic, fmt::format("the number of parts must be known when compiling: the axis has extent {}", extent.text()),
              {fmt::format("fix the size with --dim {}=N", extent.symbols().front())});
  const std::int64_t count = ceildiv(extent, size).value();
  node.require(count <= static_cast<std::int64_t>(kMostItems), Code::kTooLarge, fmt::format("{} parts; the limit is {}", count, kMostItems));
  std::vector<Dim> sizes(static_cast<std::size_t>(count), size);
  if (count > 0) sizes.back() = extent - size * (count - 1);
  return sizes;
}

std::vector<Item> import_split_to_sequence(const ImportNode& node) {
  const Val x = node.x(0);
  const std::size_t axis = node.axis(node.integer("axis", 0), x.rank());
  const bool drops_axis = not node.has(1) and not node.flag("keepdims", true);
  Shape start(x.rank(), Dim(0)), extents = x.shape();
  std::vector<Val> parts;
  for (const Dim& size : part_sizes(node, x.shape()[axis])) {
    node.require(not size.is_constant() or size.value() >= 0, Code::kShape, fmt::format("a part of length {}", size.text()));
    extents[axis] = size;
    const Val part = op::slice(x, {kStarts = start, kSizes = extents, kSteps = Ints(x.rank(), 1)});
    start[axis] += size;
    Shape shape = extents;
    if (drops_axis) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    parts.push_back(drops_axis ? reshape(part, shape) : part);
  }
  const Dim total = start[axis], extent = x.shape()[axis];
  node.require(not total.is_constant() or not extent.is_constant() or total == extent, Code::kShape,
               fmt::format("the parts have {} of {} elements", total.text(), extent.text()));
  if (total != extent) node.builder().equate(total, extent);
  return {sequence(node, std::move(parts))};
}

std::vector<Item> import_concat_from_sequence(const ImportNode& node) {
  std::vector<Val> elements = node.sequence(0);
  node.require(not elements.empty(), Code::kShape, "the sequence is empty, so that the result has no shape");
  const bool new_axis = node.flag("new_axis", false);
  const std::size_t axis = node.axis(node.integer("axis", 0), elements[0].rank() + (new_axis ? 1 : 0));
  for (Val& element : elements) {
    Shape shape = element.shape();
    if (new_axis and axis <= shape.size()) shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), Dim(1));
    if (new_axis) element = reshape(element, shape);
  }
  if (elements.size() == 1) return {elements[0]};
  return {op::concat.build(elements, {kAxis = static_cast<std::int64_t>(axis)})};
}

std::vector<Item> import_identity(const ImportNode& node) { return {node.item(0)}; }

std::vector<Item> import_optional(const ImportNode& node) { return {node.has(0) ? node.item(0) : Item::absent()}; }

std::vector<Item> import_get_element(const ImportNode& node) {
  node.require(node.item(0).is_present(), Code::kShape, "the optional holds nothing");
  return {node.item(0)};
}

std::vector<Item> import_has_element(const ImportNode& node) { return {node.builder().constant(Tensor::scalar(node.has(0) and node.item(0).is_present()))}; }

constinit const ItemImporter kSequenceOps[] = {
    {"SequenceConstruct", import_construct},
    {"SequenceEmpty", import_empty},
    {"SequenceInsert", import_insert},
    {"SequenceErase", import_erase},
    {"SequenceAt", import_at},
    {"SequenceLength", import_length},
    {"SplitToSequence", import_split_to_sequence},
    {"ConcatFromSequence", import_concat_from_sequence},
    {"Identity", import_identity},
    {"Optional", import_optional},
    {"OptionalGetElement", import_get_element},
    {"OptionalHasElement", import_has_element},
};

}  // namespace

std::span<const ItemImporter> sequence_importers() { return kSequenceOps; }

}  // namespace hone::onnx
