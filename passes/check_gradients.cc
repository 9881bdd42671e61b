#include "passes/check_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "ir/op.h"
#include "passes/forward_run.h"
#include "passes/passes.h"

namespace hone {

namespace {

constexpr double kStep = 1e-6;       // small, so that few kinks lie within it; rounding error is about 1e-10 for values around 1
constexpr double kTolerance = 1e-5;  // a wrong formula is off by far more
constexpr double kKink = 1e-3;       // slopes to both sides that differ by more than this, relatively, belong to a kink
constexpr int kDirections = 2;

/// Does rounding a result of this size change its slope by more than the tolerance? So it is with the -3e38 that masks of attention add.
bool hides_slope(double at, double slope) { return std::fabs(at) * std::numeric_limits<double>::epsilon() / kStep > kTolerance * std::max(1.0, std::fabs(slope)); }

bool is_kink(double below, double above) { return not(std::fabs(above - below) <= kKink * (1 + std::max(std::fabs(above), std::fabs(below)))); }

/// Values through which the loss can depend on a weight, by floats.
std::vector<bool> depending_on(const Graph& graph, std::span<const ValueId> weights) {
  std::vector<bool> depends(graph.value_count());
  for (const ValueId weight : weights) depends[weight.index] = true;
  for (const Node& node : graph.nodes()) {
    const bool stops = node.op->grad.formula == nullptr;
    const bool any = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return operand.valid() and depends[operand.index]; });
    for (const ValueId result : node.results) depends[result.index] = any and not stops and is_float(graph.type(result).dtype);
  }
  return depends;
}

std::vector<bool> reaching(const Graph& graph, ValueId loss) {
  std::vector<bool> reaches(graph.value_count());
  reaches[loss.index] = true;
  for (std::size_t i = graph.node_count(); i-- > 0;) {
    const Node& node = graph.node(NodeId(i));
    if (std::none_of(node.results.begin(), node.results.end(), [&](ValueId result) { return reaches[result.index]; })) continue;
    for (const ValueId operand : node.operands)
      if (operand.valid()) reaches[operand.index] = true;
  }
  return reaches;
}

bool is_half(DType dtype) { return dtype == DType::kF16 or dtype == DType::kBF16; }

/// The graph with f32 for f16 and bf16: differences this small would see nothing but their rounding. Graphs with bodies stay as they are.
Graph widened(const Graph& graph) {
  const auto& nodes = graph.nodes();
  const bool has_bodies = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return not node.bodies.empty(); });
  bool any = false;
  for (std::size_t i = 0; i < graph.value_count(); ++i) any = any or is_half(graph.type(ValueId(i)).dtype);
  if (not any or has_bodies) return graph.clone();
  Graph made;
  Builder builder(made);
  std::map<ValueId, Val> vals;
  for (const Input& input : graph.inputs()) {
    Type type = graph.type(input.value);
    if (is_half(type.dtype)) type.dtype = DType::kF32;
    vals[input.value] = builder.input(input.role, input.name, type, input.data ? std::optional(input.data->cast(type.dtype)) : std::nullopt);
    if (input.bounds) builder.set_bounds(vals[input.value].id(), input.bounds->first, input.bounds->second);
  }
  for (const Node& node : nodes) {
    std::vector<Val> operands;
    for (const ValueId operand : node.operands) operands.push_back(operand.valid() ? vals.at(operand) : Val{});
    Attrs attrs = node.attrs;
    if (attrs.has(kTo) and is_half(attrs[kTo])) attrs.set(kTo = DType::kF32);
    const Builder::Scope scope(builder, node.loc, node.part);
    const std::vector<Val> results = builder.add(*node.op, operands, attrs);
    for (std::size_t k = 0; k < results.size(); ++k) {
      vals[node.results[k]] = results[k];
      builder.set_name(results[k], graph.value(node.results[k]).name);
    }
  }
  for (const Output& output : graph.outputs()) builder.output(output.name, vals.at(output.value));
  return made;
}

std::string numbered(std::string_view kind, std::size_t i) { return fmt::format("{}{}", kind, i); }

/// The gradient formula of one node as a graph of its own: operands x0.., gradients of its results dy0.., what flows into operand i as output g<i>.
Graph formula_graph(const Graph& graph, const Node& node) {
  Graph made;
  Builder builder(made);
  std::vector<Val> operands, dys;
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    operands.push_back(node.operands[i].valid() ? builder.input(Role::kInput, numbered("x", i), graph.type(node.operands[i])) : Val{});
  std::vector<std::unique_ptr<Graph>> bodies;
  for (const auto& body : node.bodies) bodies.push_back(std::make_unique<Graph>(body->clone()));
  const std::vector<Val> results = builder.add(*node.op, operands, node.attrs, std::move(bodies));
  for (std::size_t k = 0; k < results.size(); ++k)
    dys.push_back(is_float(results[k].dtype()) ? builder.input(Role::kInput, numbered("dy", k), results[k].type()) : Val{});
  const Node& copy = made.producer(results[0].id());  // stays where it is while nodes are appended
  Grad grad(builder, copy, dys, std::vector<bool>(operands.size(), true));
  node.op->grad.formula(grad);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Val total;
    for (const Val& flow : grad.flows()[i]) total = total.valid() ? total + flow : flow;
    if (total.valid()) builder.output(numbered("g", i), total);
  }
  (void)expand(made);
  return made;
}

/// What differences along one direction say of a node, and what its formula says.
struct Slopes {
  double differences = 0, formula = 0, size = 0;
  std::int64_t kinks = 0, outside = 0, hidden = 0, elements = 0;
};

/// How far x really goes along `direction`, rounding of x + step * direction included: not at all where x is huge.
Tensor travelled(const Tensor& x, const Tensor& direction) {
  const Tensor above = moved(x, direction, kStep), below = moved(x, direction, -kStep);
  std::vector<double> way(static_cast<std::size_t>(x.element_count()));
  for (std::size_t i = 0; i < way.size(); ++i) {
    const auto e = static_cast<std::int64_t>(i);
    way[i] = std::isfinite(x.at(e)) ? (above.at(e) - below.at(e)) / (2 * kStep) : 0;
  }
  return Tensor::of<double>(x.shape(), std::span<const double>(way));
}

class NodeCheck {
 public:
  NodeCheck(ForwardRun& run, const Graph& graph, NodeId id, const std::vector<bool>& depends)
      : run_(run), node_(graph.node(id)), id_(id), operands_(run.operands_of(node_)), formula_(formula_graph(graph, node_)) {
    for (const ValueId operand : node_.operands) varies_.push_back(operand.valid() and depends[operand.index]);
  }

  Slopes along(std::uint64_t seed) {
    std::vector<Tensor> directions(operands_.size());
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (varies_[i]) directions[i] = random_direction(operands_[i].shape(), 10 * seed + i);
    const std::vector<Tensor> at = results_at(directions, 0), above = results_at(directions, kStep), below = results_at(directions, -kStep);
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (varies_[i]) directions[i] = travelled(operands_[i], directions[i]);
    Slopes slopes;
    Feeds feeds;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (node_.operands[i].valid()) feeds[numbered("x", i)] = operands_[i];
    for (std::size_t k = 0; k < at.size(); ++k)
      if (formula_.find_input(numbered("dy", k)) != nullptr) feeds[numbered("dy", k)] = weigh(at[k], above[k], below[k], seed, slopes);
    const GraphResults gradients = interpret(formula_, feeds, Precision::kDouble, run_.sizes());
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (not varies_[i] or formula_.find_output(numbered("g", i)) == nullptr) continue;
      const Tensor& gradient = gradients[numbered("g", i)];
      for (std::int64_t e = 0; e < gradient.element_count(); ++e) {
        if (slopes.outside > 0 and not std::isfinite(gradient.at(e))) continue;  // where the result is not finite, its slope need not be
        slopes.formula += gradient.at(e) * directions[i].at(e);
        slopes.size += std::fabs(gradient.at(e) * directions[i].at(e));
      }
    }
    return slopes;
  }

 private:
  std::vector<Tensor> results_at(const std::vector<Tensor>& directions, double step) {
    std::vector<Tensor> operands = operands_;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (varies_[i]) operands[i] = moved(operands[i], directions[i], step);
    return run_.run(id_, operands);
  }

  /// Random gradients of a result, 0 at its kinks and where differences tell nothing; adds their sum with the result's slopes.
  static Tensor weigh(const Tensor& at, const Tensor& above, const Tensor& below, std::uint64_t seed, Slopes& slopes) {
    const Tensor random = random_direction(at.shape(), 77 + seed);
    std::vector<double> dy;
    for (std::int64_t e = 0; e < at.element_count(); ++e) {
      const bool outside = not std::isfinite(at.at(e)) or not std::isfinite(above.at(e)) or not std::isfinite(below.at(e));
      const double difference = (above.at(e) - below.at(e)) / (2 * kStep);
      const bool hidden = not outside and hides_slope(at.at(e), difference);
      const bool kink = not outside and not hidden and is_kink((at.at(e) - below.at(e)) / kStep, (above.at(e) - at.at(e)) / kStep);
      const bool left_out = outside or hidden or kink;
      dy.push_back(left_out ? 0 : random.at(e));
      slopes.kinks += kink;
      slopes.outside += outside;
      slopes.hidden += hidden;
      const double slope = left_out ? 0 : dy.back() * difference;
      slopes.differences += slope;
      slopes.size += std::fabs(slope);
    }
    slopes.elements += at.element_count();
    return Tensor::of<double>(at.shape(), std::span<const double>(dy));
  }

  ForwardRun& run_;
  const Node& node_;
  NodeId id_;
  std::vector<Tensor> operands_;
  std::vector<bool> varies_;
  Graph formula_;
};

/// Relative to the terms' sizes; NaN is as wrong as can be.
double relative_error(double differences, double formula, double size) {
  const double error = std::fabs(differences - formula) / std::max(1.0, size);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

GradientRow check_node(ForwardRun& run, const Graph& graph, NodeId id, const std::vector<bool>& depends) {
  GradientRow row{.what = std::string(graph.node(id).op->name), .where = to_string(graph.node(id).loc)};
  NodeCheck check(run, graph, id, depends);
  for (int i = 0; i < kDirections; ++i) {
    const Slopes slopes = check.along(id.index * kDirections + static_cast<std::uint64_t>(i) + 1);
    row.relative_error = std::max(row.relative_error, relative_error(slopes.differences, slopes.formula, slopes.size));
    if (slopes.outside > 0) row.remark = fmt::format("{} of {} elements are not finite, and left out", slopes.outside, slopes.elements);
    if (slopes.hidden > 0) row.remark = fmt::format("{} of {} elements are so large that rounding hides their slope, and left out", slopes.hidden, slopes.elements);
    if (slopes.kinks > 0) row.remark = fmt::format("{} of {} elements are at a kink or curve too sharply, and left out", slopes.kinks, slopes.elements);
  }
  row.ok = row.relative_error <= kTolerance;
  return row;
}

/// The loss along random directions of one weight. A direction on which the loss has a kink says nothing: another is tried.
GradientRow check_weight(ForwardRun& run, ValueId loss, const TrainedWeight& weight, const Tensor* gradient) {
  GradientRow row{.what = "weight", .where = weight.name};
  const Tensor data = run.value(weight.value);
  const double at = run.value(loss).at(0);
  for (std::uint64_t attempt = 0; attempt < 4; ++attempt) {
    const Tensor direction = random_direction(data.shape(), 5000 + 10 * weight.value.index + attempt);
    const double above = run.value_with(loss, weight.value, moved(data, direction, kStep)),
                 below = run.value_with(loss, weight.value, moved(data, direction, -kStep));
    if (is_kink((at - below) / kStep, (above - at) / kStep)) continue;
    double along = 0, size = std::fabs(above - below) / (2 * kStep);
    for (std::int64_t e = 0; gradient != nullptr and e < gradient->element_count(); ++e) {
      along += gradient->at(e) * direction.at(e);
      size += std::fabs(gradient->at(e) * direction.at(e));
    }
    row.relative_error = relative_error((above - below) / (2 * kStep), along, size);
    row.ok = row.relative_error <= kTolerance;
    return row;
  }
  row.remark = "the loss has a kink here in every direction tried: left out";
  return row;
}

std::string text_of(const GradientReport& report) {
  std::string text = "relative errors of gradients against central differences in double\n";
  const GradientRow* first = nullptr;
  for (const GradientRow& row : report.rows) {
    text += fmt::format("{:<4} {:<20} {:8.1e}  {}{}\n", row.ok ? "ok" : "OFF", row.what, row.relative_error, row.where,
                        row.remark.empty() ? "" : "  (" + row.remark + ")");
    if (not row.ok and first == nullptr) first = &row;
  }
  if (report.rows.empty()) return text + "nothing to check: no weight of the model is trained\n";
  if (first == nullptr) return text + fmt::format("all {} gradients agree\n", report.rows.size());
  return text + fmt::format("the first that is off: {} {}\n", first->what, first->where);
}

}  // namespace

std::vector<Diag> mismatches(const GradientReport& report) {
  std::vector<Diag> problems;
  for (const GradientRow& row : report.rows)
    if (not row.ok)
      problems.push_back({Code::kGradientMismatch, fmt::format("the gradient of {} differs from central differences by {:.1e} of its size", row.what, row.relative_error),
                          {.derived = row.where}, {problems.empty() ? "what comes before it in the model follows from it: look at this one first" : ""}});
  return problems;
}

GradientReport check_gradients(const Graph& imported, const Recipe& recipe, std::int64_t batch) {
  Graph graph = widened(imported);
  (void)insert_dropout(graph, recipe);
  (void)fold_constants(graph);
  if (recipe.model.batch_norm == "train") (void)train_batch_norm(graph, recipe.train.convention);
  else (void)freeze_batch_norm(graph);
  attach_loss(graph, recipe);
  Graph whole = graph.clone();
  (void)expand(graph);
  const std::vector<TrainedWeight> weights = select_weights(graph, recipe);
  const ValueId loss = graph.find_output("loss_sum")->value;
  std::vector<ValueId> wrt;
  for (const TrainedWeight& weight : weights) wrt.push_back(weight.value);

  GradientReport report;
  MadeUp inputs = MadeUp::kAroundZero;
  if (not std::isfinite(ForwardRun(graph, batch, inputs).value(loss).at(0))) inputs = MadeUp::kPositive;  // logarithms, roots and powers
  ForwardRun run(graph, batch, inputs);
  const std::vector<bool> depends = depending_on(graph, wrt), reaches = reaching(graph, loss);
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const std::vector<ValueId>& results = graph.node(NodeId(i)).results;
    const bool between = std::any_of(results.begin(), results.end(), [&](ValueId result) { return depends[result.index] and reaches[result.index]; });
    if (between) report.rows.push_back(check_node(run, graph, NodeId(i), depends));
  }

  (void)expand_for_gradients(whole);  // as the training step has it
  wrt.clear();
  for (const TrainedWeight& weight : select_weights(whole, recipe)) wrt.push_back(weight.value);
  const std::vector<ValueId> gradients = differentiate(whole, whole.find_output("loss_sum")->value, wrt);
  Builder builder(whole);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].valid()) builder.output(numbered("g", i), builder.val(gradients[i]));
  (void)expand(whole);
  const ForwardRun backward(whole, batch, inputs);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Output* gradient = whole.find_output(numbered("g", i));
    report.rows.push_back(check_weight(run, loss, weights[i], gradient == nullptr ? nullptr : &backward.value(gradient->value)));
  }
  report.ok = std::all_of(report.rows.begin(), report.rows.end(), [](const GradientRow& row) { return row.ok; });
  report.text = text_of(report);
  return report;
}

}  // namespace hone
