// Losses that are nodes of the model.
#include <fmt/format.h>

#include "frontend/onnx/ops.h"
#include "ir/ops/formulas.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// -log_p[target] of every target, weighted; log_p has the classes along axis 1.
struct Losses {
  Val each;     ///< 0 where the target is ignored
  Val weights;  ///< what each was weighed with: the weight of its class, or 1, and 0 where it is ignored; invalid: all are 1
};

void check_class_weights(const ImportNode& node, Val weights, Dim classes) {
  node.require(weights.rank() == 1, Code::kShape, "the weights must be a vector with one element a class");
  const Dim given = weights.shape()[0];
  node.require(given == classes or not given.is_constant() or not classes.is_constant(), Code::kShape,
               fmt::format("{} weights for {} classes", given.text(), classes.text()));
}

Losses losses_of(const ImportNode& node, Val log_p, Val target) {
  node.require(log_p.rank() >= 2 and target.rank() + 1 == log_p.rank(), Code::kShape, "needs [N,C,...] and targets [N,...]");
  node.require(is_integer(target.dtype()), Code::kType, "the targets are class numbers: integers");
  const Val classes_last = move_axis_last(log_p, 1);
  const Ints last = {static_cast<std::int64_t>(log_p.rank()) - 1};
  const Val zero = node.builder().scalar(0, log_p.dtype()), taken = op::one_hot(target, {kShape = classes_last.shape()});
  Losses losses{-sum(op::where(taken, classes_last, zero), last, false), {}};
  if (node.has(2)) {
    check_class_weights(node, node.x(2), log_p.shape()[1]);
    losses.weights = sum(op::where(taken, node.x(2), zero), last, false);
    losses.each = losses.each * losses.weights;
  }
  if (not node.has_attribute("ignore_index")) return losses;
  const Val ignored = op::equal(target, node.builder().constant(Tensor::scalar(node.integer("ignore_index", 0)).cast(target.dtype())));
  losses.each = op::where(ignored, zero, losses.each);
  losses.weights = op::where(ignored, zero, losses.weights.valid() ? losses.weights : node.builder().scalar(1, log_p.dtype()));
  return losses;
}

Val reduced(const ImportNode& node, const Losses& losses) {
  const std::string reduction = node.text("reduction", "mean");
  if (reduction == "none") return losses.each;
  const Val total = sum_all(losses.each);
  if (reduction == "sum") return total;
  node.require(reduction == "mean", Code::kBadAttribute, fmt::format("reduction = \"{}\"; there are none, sum and mean", reduction));
  return total / (losses.weights.valid() ? sum_all(losses.weights) : size_value(node.builder(), element_count(losses.each.shape()), total.dtype()));
}

std::vector<Val> import_negative_log_likelihood(const ImportNode& node) { return {reduced(node, losses_of(node, node.x(0), node.x(1)))}; }

std::vector<Val> import_softmax_cross_entropy(const ImportNode& node) {
  node.require(node.x(0).rank() >= 2, Code::kShape, "needs scores [N,C,...]");
  const Val log_p = op::log_softmax(node.x(0), {kAxis = 1});
  return {reduced(node, losses_of(node, log_p, node.x(1))), log_p};
}

constinit const Importer kLossOps[] = {
    {"NegativeLogLikelihoodLoss", import_negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", import_softmax_cross_entropy},
};

}  // namespace

std::span<const Importer> loss_importers() { return kLossOps; }

}  // namespace hone::onnx
