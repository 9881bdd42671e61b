// ONNX's own optimizers, domain ai.onnx.preview.training. R is the learning rate, T the number of updates so far; then come all tensors X, all gradients G,
// and the optimizer's states, each list as long as the first. The factors are worked out in f64 and rounded once.
#include <fmt/format.h>

#include "frontend/onnx/body.h"
#include "frontend/onnx/ops/training.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// The operands of one X: X itself, its gradient, and its states.
std::vector<std::vector<Val>> tensors_of(const ImportNode& node, std::size_t lists) {
  const std::size_t given = node.count() < 2 ? 0 : node.count() - 2;
  node.require(given > 0 and given % lists == 0, Code::kBadGraph, fmt::format("has {} inputs behind R and T, and needs {} for each tensor", given, lists));
  std::vector<std::vector<Val>> tensors(given / lists);
  for (std::size_t i = 0; i < given; ++i) tensors[i % tensors.size()].push_back(node.x(2 + i));
  return tensors;
}

/// New tensors first, then each list of new states.
std::vector<Val> by_lists(const std::vector<std::vector<Val>>& updated) {
  std::vector<Val> results;
  for (std::size_t list = 0; list < updated[0].size(); ++list)
    for (const std::vector<Val>& one : updated) results.push_back(one[list]);
  return results;
}

Val as_f64(const ImportNode& node, std::size_t i) { return reshape(cast(node.x(i), DType::kF64), {}); }

Val regularized(const ImportNode& node, Val x, Val g) {
  const double coefficient = node.real("norm_coefficient", 0);
  return coefficient == 0 ? g : g + x * coefficient;
}

/// `first` before the first update, `later` from then on.
Val by_update(const ImportNode& node, Val later, Val first) {
  const Val t = as_f64(node, 1);
  return op::where(op::greater(t, node.builder().scalar(0, DType::kF64)), later, first);
}

std::vector<Val> import_adam(const ImportNode& node) {
  const double alpha = node.real("alpha", 0.9F), beta = node.real("beta", 0.999F), epsilon = node.real("epsilon", 1e-6F);
  const double shrink = 1 - node.real("norm_coefficient_post", 0);
  const auto tensors = tensors_of(node, 4);
  Builder& builder = node.builder();
  const Val r = as_f64(node, 0), t = as_f64(node, 1);
  const auto power = [&](double base) { return op::pow(builder.scalar(base, DType::kF64), t); };
  const Val rate = by_update(node, r * op::sqrt(1.0 - power(beta)) / (1.0 - power(alpha)), r);
  std::vector<std::vector<Val>> updated;
  for (const std::vector<Val>& one : tensors) {
    const Val x = one[0], g = regularized(node, x, one[1]);
    const Val v = one[2] * alpha + g * (1 - alpha), h = one[3] * beta + square(g) * (1 - beta);
    const Val moved = x - cast(rate, x.dtype()) * v / (op::sqrt(h) + epsilon);
    updated.push_back({shrink == 1 ? moved : moved * shrink, v, h});
  }
  return by_lists(updated);
}

std::vector<Val> import_adagrad(const ImportNode& node) {
  const double epsilon = node.real("epsilon", 1e-6F);
  const auto tensors = tensors_of(node, 3);
  const Val rate = as_f64(node, 0) / (as_f64(node, 1) * node.real("decay_factor", 0) + 1.0);
  std::vector<std::vector<Val>> updated;
  for (const std::vector<Val>& one : tensors) {
    const Val x = one[0], g = regularized(node, x, one[1]), h = one[2] + square(g);
    updated.push_back({x - cast(rate, x.dtype()) * g / (op::sqrt(h) + epsilon), h});
  }
  return by_lists(updated);
}

std::vector<Val> import_momentum(const ImportNode& node) {
  const double alpha = node.real("alpha", 0);
  const std::string mode = node.text("mode", "standard");
  node.require(mode == "standard" or mode == "nesterov", Code::kBadAttribute, fmt::format("mode is \"{}\", and must be standard or nesterov", mode));
  const auto tensors = tensors_of(node, 3);
  Builder& builder = node.builder();
  const Val share = by_update(node, builder.scalar(node.real("beta", 0), DType::kF64), builder.scalar(1, DType::kF64)), rate = as_f64(node, 0);
  std::vector<std::vector<Val>> updated;
  for (const std::vector<Val>& one : tensors) {
    const Val x = one[0], g = regularized(node, x, one[1]), v = one[2] * alpha + g * cast(share, x.dtype());
    updated.push_back({x - cast(rate, x.dtype()) * (mode == "nesterov" ? g + v * alpha : v), v});
  }
  return by_lists(updated);
}

constinit const Importer kTrainingOps[] = {
    {"Adam", import_adam, {}, kTrainingDomain},
    {"Adagrad", import_adagrad, {}, kTrainingDomain},
    {"Momentum", import_momentum, {}, kTrainingDomain},
};

}  // namespace

std::span<const Importer> training_importers() { return kTrainingOps; }

}  // namespace hone::onnx
