#include "frontend/onnx/free_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/text.h"
#include "frontend/onnx/readers.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

bool has_batch(const Dim& extent, const FreeBatch& batch) {
  const std::vector<std::string> symbols = extent.symbols();
  return std::find(symbols.begin(), symbols.end(), batch.size.text()) != symbols.end();
}

/// The only axis whose extent has the batch in it.
std::optional<std::size_t> batch_axis(const Shape& shape, const FreeBatch& batch) {
  std::optional<std::size_t> axis;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (not has_batch(shape[i], batch)) continue;
    if (axis) return std::nullopt;
    axis = i;
  }
  return axis;
}

Shape exported_shape(Shape shape, const FreeBatch& batch) {
  for (Dim& extent : shape) extent = extent.substitute({{batch.size.text(), batch.exported}});
  return shape;
}

/// The extents as numbers, where all of them are some.
std::optional<Ints> numbers_of(const Shape& shape) {
  Ints numbers;
  for (const Dim& extent : shape) {
    if (not extent.is_constant()) return std::nullopt;
    numbers.push_back(extent.value());
  }
  return numbers;
}

std::int64_t product_of(const Ints& extents) { return element_count(Shape(extents.begin(), extents.end())).value(); }

/// A constant shape is written for the exported batch. In row-major order the batch is behind what stands in front of it in the data: in the extent there that
/// is the exported batch itself, since what has 6 * batch rows may have them step by step, or else in the first that reaches beyond.
void fit_reshape(ImportNode& node, const FreeBatch& batch) {
  const Shape data = node.x(0).shape();
  const auto axis = batch_axis(data, batch);
  const auto target = axis ? numbers_of(node.contents(1, "shape")) : std::nullopt;
  const auto old = numbers_of(exported_shape(data, batch));
  if (not target or not old) return;
  Ints shape = *target;
  const bool copies = not node.flag("allowzero", false);
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 0 and copies and i < old->size()) shape[i] = (*old)[i];
  const auto open = std::find(shape.begin(), shape.end(), -1);
  const std::int64_t count = product_of(*old);
  if (open != shape.end()) {
    *open = 1;
    const std::int64_t rest = product_of(shape);
    if (rest <= 0 or count % rest != 0) return;
    *open = count / rest;
  }
  if (count <= 0 or std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent <= 0; }) or product_of(shape) != count) return;
  const std::int64_t in_front = product_of(Ints(old->begin(), old->begin() + static_cast<std::ptrdiff_t>(*axis)));
  const std::int64_t end = in_front * (*old)[*axis];
  std::int64_t passed = 1;
  std::int64_t* found = nullptr;
  for (std::int64_t& extent : shape) {
    const bool reaches_beyond = passed == in_front or (passed < in_front and passed * extent > in_front);
    if (found == nullptr and reaches_beyond and extent % batch.exported == 0) found = &extent;
    if (passed >= in_front and extent == batch.exported and passed * extent <= end) {
      found = &extent;
      break;
    }
    passed *= extent;
  }
  if (found == nullptr) return;
  // Where one sample leaves it open which side of it the batch belongs to, a matrix has samples in its rows.
  if (batch.exported == 1 and shape.size() == 2 and *found != 1) found = shape.data();
  *found = -1;
  node.set_operand(1, shape);
}

/// `x` with the batch in `axis` if it has one row there.
Val repeated(Val x, std::size_t axis, const FreeBatch& batch) {
  if (axis >= x.rank() or not x.shape()[axis].is_constant(1)) return x;
  Shape shape = x.shape();
  shape[axis] = batch.size;
  return broadcast_to(x, shape);
}

/// A token in front of each sample is one row where the exporter knew that there is one sample.
void fit_concat(ImportNode& node, const FreeBatch& batch) {
  if (batch.exported != 1) return;
  for (std::size_t i = 0; i < node.count(); ++i) {
    const auto axis = node.has(i) and node.item(i).is_tensor() ? batch_axis(node.x(i).shape(), batch) : std::nullopt;
    if (not axis or node.x(i).shape()[*axis] != batch.size or node.axis(node.integer("axis", 0), node.x(i).rank()) == *axis) continue;
    for (std::size_t k = 0; k < node.count(); ++k)
      if (node.has(k) and node.item(k).is_tensor() and node.x(k).rank() == node.x(i).rank()) node.set_operand(k, repeated(node.x(k), *axis, batch));
    return;
  }
}

/// First states, [directions, batch, hidden].
void fit_recurrent(ImportNode& node, const FreeBatch& batch) {
  const std::size_t axis = node.integer("layout", 0) == 1 ? 0 : 1;
  if (batch.exported != 1 or node.x(0).rank() != 3 or node.x(0).shape()[axis] != batch.size) return;
  for (std::size_t i = kRecurrentFirstState; i < static_cast<std::size_t>(kRecurrentFirstState) + 2 and i < node.count(); ++i)
    if (node.has(i) and node.item(i).is_tensor()) node.set_operand(i, repeated(node.x(i), axis, batch));
}

constexpr struct {
  std::string_view op_type;
  void (*fit)(ImportNode& node, const FreeBatch& batch);
} kFitted[] = {{"Reshape", fit_reshape}, {"Concat", fit_concat}, {"RNN", fit_recurrent}, {"GRU", fit_recurrent}, {"LSTM", fit_recurrent}};

// --- Nodes that choose by position ---

bool any_has_batch(const Shape& shape, std::size_t begin, std::size_t end, const FreeBatch& batch) {
  return std::any_of(shape.begin() + static_cast<std::ptrdiff_t>(std::min(begin, shape.size())),
                     shape.begin() + static_cast<std::ptrdiff_t>(std::min(end, shape.size())), [&](const Dim& extent) { return has_batch(extent, batch); });
}

/// [begin, end) of a shape's axes.
using Axes = std::pair<std::size_t, std::size_t>;

Axes the_axis(const Node& node, const Shape&) {
  const auto axis = static_cast<std::size_t>(node.attrs[kAxis]);
  return {axis, axis + 1};
}
/// As many as a position has numbers.
Axes axes_from(std::size_t begin, const Shape& positions) {
  return {begin, begin + (positions.back().is_constant() ? static_cast<std::size_t>(positions.back().value()) : 1)};
}

/// Ops that choose elements of operand `data` at the positions in operand 1, and the axes that these go along.
struct Choosing {
  const OpDef* op;
  std::size_t data;
  Axes (*axes)(const Node& node, const Shape& positions);
};
constexpr Choosing kChoosing[] = {
    {&op::gather, 0, the_axis},
    {&op::gather_elements, 0, the_axis},
    {&op::gather_nd, 0, [](const Node& node, const Shape& positions) { return axes_from(static_cast<std::size_t>(node.attrs[kBatchDims]), positions); }},
    {&op::scatter_nd, 2, [](const Node&, const Shape& positions) { return axes_from(0, positions); }},
    {&op::gather_sum, 0,
     [](const Node&, const Shape&) {
       return Axes{2, 3};
     }},
};

/// Does the node make positions among all samples?
bool counts_samples(const Graph& graph, const Node& node, const FreeBatch& batch) {
  const auto has_in_axis = [&](const Shape& shape) {
    const auto axis = static_cast<std::size_t>(node.attrs[kAxis]);
    return any_has_batch(shape, axis, axis + 1, batch);
  };
  if (*node.op == op::iota) return has_in_axis(graph.type(node.results[0]).shape);
  if (*node.op == op::arg_top_k) return has_in_axis(graph.type(node.operands[0]).shape);
  const OpDef* const kCounting[] = {
      &op::pad_positions, &op::nonzero_positions, &op::unique_positions, &op::non_max_suppression, &op::linear_recurrence, &op::scan, &op::while_trips,
      &op::branch};
  return std::ranges::find(kCounting, node.op) != std::end(kCounting);
}

bool comes_of_counting(const Graph& graph, ValueId positions, const FreeBatch& batch) {
  std::set<NodeId> seen;
  for (std::vector<ValueId> open = {positions}; not open.empty();) {
    const NodeId producer = graph.value(open.back()).producer;
    open.pop_back();
    if (not producer.valid() or not seen.insert(producer).second) continue;
    const Node& node = graph.node(producer);
    if (counts_samples(graph, node, batch)) return true;
    std::ranges::copy_if(node.operands, std::back_inserter(open), [](ValueId operand) { return operand.valid(); });
  }
  return false;
}

/// Does the node choose among samples at positions that do not count them? The numbers of one sample are all 0, which is then the first one for all.
bool takes_first_for_all(const Graph& graph, const Node& node, const FreeBatch& batch) {
  const auto found = std::ranges::find(kChoosing, node.op, &Choosing::op);
  if (found == std::end(kChoosing) or batch.exported != 1 or node.operands.size() <= found->data or not node.operands[found->data].valid()) return false;
  const Shape& positions = graph.type(node.operands[1]).shape;
  const auto [begin, end] = positions.empty() ? Axes{} : found->axes(node, positions);
  return any_has_batch(graph.type(node.operands[found->data]).shape, begin, end, batch) and not comes_of_counting(graph, node.operands[1], batch);
}

}  // namespace

std::optional<std::int64_t> fixed_batch(const GraphProto& graph) {
  std::set<std::string_view> initializers;
  for (const TensorProto& tensor : graph.initializer()) initializers.insert(tensor.name());
  std::optional<std::int64_t> batch;
  for (const ValueInfoProto& input : graph.input()) {
    const TensorShapeProto& shape = input.type().tensor_type().shape();
    if (initializers.contains(input.name()) or shape.dim_size() == 0) continue;
    const auto& first = shape.dim(0);
    if (not first.has_dim_value() or first.dim_value() <= 0 or (batch and *batch != first.dim_value())) return std::nullopt;
    batch = first.dim_value();
  }
  return batch;
}

FreedInputs::FreedInputs(GraphProto& graph, std::int64_t exported, const std::string& name) : exported_(exported) {
  for (auto* values : {graph.mutable_input(), graph.mutable_output()})
    for (ValueInfoProto& value : *values) {
      if (not value.type().has_tensor_type() or value.type().tensor_type().shape().dim_size() == 0) continue;
      auto* first = value.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0);
      if (not first->has_dim_value() or first->dim_value() != exported) continue;
      first->set_dim_param(name);
      freed_.push_back(first);
    }
}

FreedInputs::~FreedInputs() {
  for (auto* extent : freed_) extent->set_dim_value(exported_);
}

void fit_to_batch(ImportNode& node, const FreeBatch& batch) {
  for (const auto& [op_type, fit] : kFitted)
    if (node.op_type() == op_type and node.domain().empty()) fit(node, batch);
}

std::string why_not_free(const Graph& freed, const Graph& fixed, const std::string& asked, const FreeBatch& batch) {
  const auto has_samples = [&](ValueId value) {
    const Shape& shape = freed.type(value).shape;
    return std::any_of(shape.begin(), shape.end(), [&](const Dim& extent) {
      const auto at = [&](std::int64_t size) { return extent.substitute({{batch.size.text(), size}}); };
      return has_batch(extent, batch) and at(2 * batch.exported) == 2 * at(batch.exported);  // the smaller of the batch and 1 has no more for more samples
    });
  };
  for (const Node& node : freed.nodes()) {
    const bool reads_samples =
        std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return operand.valid() and has_samples(operand); });
    const auto lost = std::find_if_not(node.results.begin(), node.results.end(), has_samples);
    if (reads_samples and *node.op != op::sizes and lost != node.results.end())
      return fmt::format("node {} makes {} of all samples", quoted(node.loc.node), to_string(freed.type(*lost)));
    if (takes_first_for_all(freed, node, batch))
      return fmt::format("node {} takes samples by their numbers, which are written down for one", quoted(node.loc.node));
  }
  for (const Output& output : fixed.outputs()) {
    const Output* other = freed.find_output(output.name);
    if (other == nullptr or exported_shape(freed.type(other->value).shape, batch) != fixed.type(output.value).shape)
      return fmt::format("the output {} has another shape", quoted(output.name));
  }
  const Output* first = asked.empty() and not fixed.outputs().empty() ? fixed.outputs().data() : fixed.find_output(asked);
  const Output* samples = first == nullptr ? nullptr : freed.find_output(first->name);
  if (samples == nullptr or freed.type(samples->value).shape.empty() or not has_batch(freed.type(samples->value).shape[0], batch))
    return "the output does not begin with the batch";
  return "";
}

}  // namespace hone::onnx
