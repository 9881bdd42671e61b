#include "frontend/onnx/written_norms.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "base/text.h"
#include "frontend/onnx/mend_model.h"
#include "ir/op.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace hone::onnx {

namespace {

/// A weight of one number a channel, or the inverse deviation that belongs to a variance: 1 / sqrt(variance + epsilon).
struct Factor {
  ValueId weight;
  bool inverse_deviation = false;
  auto operator<=>(const Factor& other) const { return std::pair(weight.index, inverse_deviation) <=> std::pair(other.weight.index, other.inverse_deviation); }
  bool operator==(const Factor&) const = default;
};

/// sign * f1 * f2 ...
struct Term {
  int sign = 1;
  std::vector<Factor> factors = {};  ///< sorted
  bool operator==(const Term&) const = default;
};

/// A sum of terms: the same one however it is put together.
using Sum = std::vector<Term>;

/// Sums of more terms, and terms of more factors, are no batch normalization's.
constexpr std::size_t kMostTerms = 4, kMostFactors = 4;

std::optional<Sum> product(const Sum& a, const Sum& b) {
  Sum result;
  for (const Term& x : a) {
    for (const Term& y : b) {
      Term term{x.sign * y.sign, x.factors};
      term.factors.insert(term.factors.end(), y.factors.begin(), y.factors.end());
      std::ranges::sort(term.factors);
      if (term.factors.size() > kMostFactors) return std::nullopt;
      result.push_back(std::move(term));
    }
  }
  return result.size() > kMostTerms ? std::nullopt : std::optional(std::move(result));
}

Sum negated(Sum sum) {
  for (Term& term : sum) term.sign = -term.sign;
  return sum;
}

Sum added(Sum a, const Sum& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Numbers of channels that lie along one axis, counted from the last one, or of which there is one for all.
struct Channels {
  Sum sum;
  std::optional<std::size_t> axis = {};
};

/// tensor * scale + shift.
struct Affine {
  ValueId tensor;
  Sum scale = {Term{}}, shift = {};
  std::optional<std::size_t> axis = {};
};

struct Norm {
  ValueId x, mean, variance, gamma, beta;
  double epsilon = 0;
  std::size_t axis = 0;  ///< of the channels, from the last one
};

/// Where the only axis that is longer than 1 lies, from the last one.
std::optional<std::size_t> axis_of_vector(const Shape& shape) {
  const std::optional<std::size_t> axis = only_axis(shape);
  return axis and shape[*axis].is_constant() ? std::optional(shape.size() - 1 - *axis) : std::nullopt;
}

class Reader {
 public:
  explicit Reader(const Graph& graph) : graph_(graph) {
    for (const Input& input : graph.inputs())
      if (const auto axis = axis_of_vector(graph.type(input.value).shape); axis and input.role == Role::kWeight) channels_[input.value.index] = {{Term{1, {{input.value}}}}, axis};
  }

  /// What the node's result is, if it is a batch normalization: of some, an earlier one is a part of a later one.
  std::optional<Norm> read(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.results.size() != 1) return std::nullopt;
    if (auto channels = channels_of(node)) {
      channels_[node.results[0].index] = std::move(*channels);
      return std::nullopt;
    }
    if (const auto deviation = deviation_of(node)) {
      deviations_[node.results[0].index] = *deviation;
      return std::nullopt;
    }
    const auto affine = affine_of(node);
    if (not affine or not is_in_play(*affine)) return std::nullopt;
    affine_[node.results[0].index] = *affine;
    return norm_of(*affine, node.results[0]);
  }

 private:
  /// sqrt(variance + epsilon), or the sum itself.
  struct Deviation {
    ValueId variance;
    double epsilon = 0;
    std::size_t axis = 0;
    bool rooted = false;
  };

  std::optional<Channels> channels(ValueId value) const {
    if (const auto found = channels_.find(value.index); found != channels_.end()) return found->second;
    const auto number = graph_.scalar_constant(value);
    if (number == 1 or number == -1) return Channels{{Term{static_cast<int>(*number)}}};
    return std::nullopt;
  }
  const Deviation* deviation(ValueId value, bool rooted) const {
    const auto found = deviations_.find(value.index);
    return found != deviations_.end() and found->second.rooted == rooted ? &found->second : nullptr;
  }
  Affine affine(ValueId value) const {
    const auto found = affine_.find(value.index);
    return found != affine_.end() ? found->second : Affine{.tensor = value};
  }
  bool is_moved(const Node& node) const { return *node.op == op::reshape or *node.op == op::broadcast_to; }

  Channels inverse(const Deviation& deviation) {
    epsilons_[deviation.variance.index] = deviation.epsilon;
    return {{Term{1, {{deviation.variance, true}}}}, deviation.axis};
  }

  static std::optional<Channels> with(const Channels& a, const Channels& b, std::optional<Sum> sum) {
    if (not sum or sum->size() > kMostTerms or (a.axis and b.axis and a.axis != b.axis)) return std::nullopt;
    return Channels{std::move(*sum), a.axis ? a.axis : b.axis};
  }

  std::optional<Deviation> deviation_of(const Node& node) const {
    if (*node.op == op::sqrt) {
      const Deviation* sum = deviation(node.operands[0], false);
      return sum == nullptr ? std::nullopt : std::optional(Deviation{sum->variance, sum->epsilon, sum->axis, true});
    }
    if (is_moved(node)) {
      const auto found = deviations_.find(node.operands[0].index);
      const auto axis = axis_of_vector(graph_.type(node.results[0]).shape);
      return found == deviations_.end() or not axis ? std::nullopt : std::optional(Deviation{found->second.variance, found->second.epsilon, *axis, found->second.rooted});
    }
    if (*node.op != op::add) return std::nullopt;
    for (const std::size_t i : {0, 1}) {
      const auto variance = channels_.find(node.operands[i].index);
      const auto epsilon = graph_.scalar_constant(node.operands[1 - i]);
      if (variance != channels_.end() and epsilon and *epsilon > 0 and *epsilon < 1 and variance->second.sum.size() == 1 and variance->second.sum[0].factors.size() == 1)
        return Deviation{variance->second.sum[0].factors[0].weight, *epsilon, *variance->second.axis, false};
    }
    return std::nullopt;
  }

  /// Of values that are made of weights alone.
  std::optional<Channels> channels_of(const Node& node) {
    const auto a = node.operands.empty() ? std::nullopt : channels(node.operands[0]);
    if (*node.op == op::pow) {
      const Deviation* sum = deviation(node.operands[0], false);
      return sum != nullptr and graph_.scalar_constant(node.operands[1]) == -0.5 ? std::optional(inverse(*sum)) : std::nullopt;
    }
    if (not a) return std::nullopt;
    if (is_moved(node)) {
      const auto axis = axis_of_vector(graph_.type(node.results[0]).shape);
      return axis ? std::optional(Channels{a->sum, axis}) : std::nullopt;
    }
    if (*node.op == op::neg) return Channels{negated(a->sum), a->axis};
    if (*node.op == op::div) {
      const Deviation* root = deviation(node.operands[1], true);
      if (root == nullptr) return std::nullopt;
      const Channels r = inverse(*root);
      return with(*a, r, product(a->sum, r.sum));
    }
    const auto b = node.operands.size() == 2 ? channels(node.operands[1]) : std::nullopt;
    if (not b) return std::nullopt;
    if (*node.op == op::mul) return with(*a, *b, product(a->sum, b->sum));
    if (*node.op == op::add) return with(*a, *b, added(a->sum, b->sum));
    if (*node.op == op::sub) return with(*a, *b, added(a->sum, negated(b->sum)));
    return std::nullopt;
  }

  /// Of a tensor and channels; what was no part of a normalization so far counts as a tensor of its own, a sum with a bias for instance.
  std::optional<Affine> affine_of(const Node& node) {
    if (node.operands.empty() or not node.operands[0].valid()) return std::nullopt;
    if (*node.op == op::neg) {
      Affine a = affine(node.operands[0]);
      return Affine{a.tensor, negated(a.scale), negated(a.shift), a.axis};
    }
    if (node.operands.size() != 2) return std::nullopt;
    if (*node.op == op::div) {
      const Deviation* root = deviation(node.operands[1], true);
      return root == nullptr ? std::nullopt : scaled(affine(node.operands[0]), inverse(*root));
    }
    const bool adds = *node.op == op::add or *node.op == op::sub;
    if (not adds and *node.op != op::mul) return std::nullopt;
    for (const std::size_t i : {0, 1}) {
      const auto other = channels(node.operands[1 - i]);
      if (not other or not other->axis) continue;
      if (not adds) return scaled(affine(node.operands[i]), *other);
      const Affine a = affine(node.operands[i]);
      const bool first_negative = *node.op == op::sub and i == 1, second_negative = *node.op == op::sub and i == 0;
      if (a.axis and a.axis != other->axis) return std::nullopt;
      return Affine{a.tensor, first_negative ? negated(a.scale) : a.scale, added(first_negative ? negated(a.shift) : a.shift, second_negative ? negated(other->sum) : other->sum), other->axis};
    }
    return std::nullopt;
  }
  static std::optional<Affine> scaled(const Affine& a, const Channels& by) {
    const auto scale = product(a.scale, by.sum), shift = product(a.shift, by.sum);
    if (not scale or not shift or (a.axis and a.axis != by.axis)) return std::nullopt;
    return Affine{a.tensor, *scale, *shift, by.axis};
  }

  /// Is a mean subtracted, either way, or is there a deviation to divide by?
  static bool is_in_play(const Affine& affine) {
    const auto plays = [](const Term& term) { return term.sign < 0 or std::ranges::any_of(term.factors, &Factor::inverse_deviation); };
    return affine.shift.size() <= kMostTerms and (std::ranges::any_of(affine.scale, plays) or std::ranges::any_of(affine.shift, plays));
  }

  std::optional<Norm> norm_of(const Affine& affine, ValueId result) const {
    if (affine.scale.size() != 1 or affine.scale[0].sign != 1 or affine.shift.empty() or affine.shift.size() > 2) return std::nullopt;
    Norm norm{.x = affine.tensor, .mean = {}, .variance = {}, .gamma = {}, .beta = {}, .axis = *affine.axis};
    for (const Factor& factor : affine.scale[0].factors) {
      ValueId& place = factor.inverse_deviation ? norm.variance : norm.gamma;
      if (place.valid()) return std::nullopt;
      place = factor.weight;
    }
    if (not norm.variance.valid()) return std::nullopt;
    norm.epsilon = epsilons_.at(norm.variance.index);
    for (const Term& term : affine.shift) {
      const bool is_beta = term.sign > 0 and term.factors.size() == 1 and not term.factors[0].inverse_deviation;
      const auto mean = is_beta ? std::nullopt : mean_in(term, affine.scale[0]);
      ValueId& place = is_beta ? norm.beta : norm.mean;
      if (place.valid() or not(is_beta or mean)) return std::nullopt;
      place = is_beta ? term.factors[0].weight : *mean;
    }
    return is_whole(norm, result) ? std::optional(norm) : std::nullopt;
  }

  /// What stands in -mean * scale beside the scale.
  static std::optional<ValueId> mean_in(const Term& term, const Term& scale) {
    if (term.sign != -1 or term.factors.size() != scale.factors.size() + 1) return std::nullopt;
    std::vector<Factor> rest;
    std::ranges::set_difference(term.factors, scale.factors, std::back_inserter(rest));
    return rest.size() == 1 and not rest[0].inverse_deviation ? std::optional(rest[0].weight) : std::nullopt;
  }

  bool is_whole(const Norm& norm, ValueId result) const {
    const Shape& shape = graph_.type(norm.x).shape;
    if (not norm.mean.valid() or not(norm.gamma.valid() or norm.beta.valid())) return false;  // without either it may be a preparation of data that is meant to stay
    if (graph_.type(result).shape != shape or norm.axis + 1 >= shape.size() or graph_.input_of(norm.x) != nullptr) return false;
    const ValueId weights[] = {norm.mean, norm.variance, norm.gamma, norm.beta};
    for (std::size_t i = 0; i < std::size(weights); ++i) {
      if (not weights[i].valid()) continue;
      const Type& type = graph_.type(weights[i]);
      if (type.shape != Shape{shape[shape.size() - 1 - norm.axis]} or type.dtype != graph_.type(norm.x).dtype or std::ranges::count(weights, weights[i]) > 1) return false;
    }
    return true;
  }

  const Graph& graph_;
  std::map<std::uint32_t, Channels> channels_;     // by value, and so are these:
  std::map<std::uint32_t, Deviation> deviations_;
  std::map<std::uint32_t, Affine> affine_;
  std::map<std::uint32_t, double> epsilons_;       // by variance
};

/// By result: the largest normalizations.
std::map<std::uint32_t, Norm> find_norms(const Graph& graph) {
  const std::vector<std::uint32_t> uses = count_uses(graph);
  Reader reader(graph);
  std::map<std::uint32_t, Norm> found;
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    const auto norm = reader.read(NodeId(i));
    if (not norm or uses[node.results[0].index] == 0) continue;
    for (const ValueId operand : node.operands)
      if (const auto part = found.find(operand.index); part != found.end() and part->second.x == norm->x and part->second.variance == norm->variance) found.erase(part);
    found.emplace(node.results[0].index, *norm);
  }
  return found;
}

Val batch_norm_of(Rewriter& rewriter, const Norm& norm) {
  const Val x = rewriter.mapped(norm.x);
  const std::size_t channel = x.rank() - 1 - norm.axis;
  const Shape channels = {x.shape()[channel]};
  const auto weight = [&](ValueId value, double otherwise) { return value.valid() ? rewriter.mapped(value) : broadcast_to(rewriter.builder().scalar(otherwise, x.dtype()), channels); };
  Ints to_second(x.rank()), back(x.rank());
  std::iota(to_second.begin(), to_second.end(), 0);
  std::rotate(to_second.begin() + 1, to_second.begin() + static_cast<std::ptrdiff_t>(channel), to_second.begin() + static_cast<std::ptrdiff_t>(channel) + 1);
  for (std::size_t i = 0; i < back.size(); ++i) back[static_cast<std::size_t>(to_second[i])] = static_cast<std::int64_t>(i);
  const Val y = op::batch_norm.build({channel == 1 ? x : transpose(x, to_second), weight(norm.gamma, 1), weight(norm.beta, 0), weight(norm.mean, 0), weight(norm.variance, 1)}, {kEpsilon = norm.epsilon, kMomentum = 0.99});
  return channel == 1 ? y : transpose(y, back);
}

}  // namespace

void restore_batch_norm(Graph& graph, const Loc& file, Diags& diags) {
  const std::map<std::uint32_t, Norm> norms = find_norms(graph);
  if (norms.empty()) return;
  std::vector<std::string> statistics;
  (void)Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    const auto found = norms.find(node.results[0].index);
    if (found == norms.end()) return false;
    for (const ValueId value : {found->second.mean, found->second.variance}) statistics.push_back(rewriter.old().input_of(value)->name);
    rewriter.replace(node.results[0], batch_norm_of(rewriter, found->second));
    return true;
  });
  diags.warn(Code::kModelWarning, fmt::format("batch normalization is written out as arithmetic in {} place{}, and is taken as such again: {} are its means and variances, not weights to train", norms.size(), norms.size() == 1 ? "" : "s", list_of(statistics)), file,
             {R"(to train with the statistics that are in the file: [model] batch_norm = "frozen")"});
}

}  // namespace hone::onnx
