// The derivative as an op: what ONNX's Gradient becomes, until the graph around it is known to the end (passes/expand.cc).
#include "ir/differentiate.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

std::vector<Type> infer_gradient(Infer& infer) {
  infer.require(infer.count() > 1, Code::kBadGraph, "there must be an x");
  for (std::size_t i = 0; i < infer.count(); ++i) infer.require(is_float(infer.dtype(i)), Code::kType, "y and x must be floats");
  std::vector<Type> types;
  for (std::size_t i = 1; i < infer.count(); ++i) types.push_back(infer.type(i));
  return types;
}

std::vector<Val> lower_gradient(const Lower& l) {
  const Builder::Scope scope(l.builder, l.builder.loc(), Part::kBackward);
  const Val y = l.x(0);
  const Seed seed{y.id(), hone::full(l.builder, 1, y.dtype(), y.shape()).id()};
  std::vector<ValueId> wrt;
  for (std::size_t i = 1; i < l.operands.size(); ++i) wrt.push_back(l.x(i).id());
  const std::vector<ValueId> gradients = differentiate(l.builder, std::span(&seed, 1), wrt);
  std::vector<Val> results;
  for (std::size_t i = 0; i < wrt.size(); ++i)
    results.push_back(gradients[i].valid() ? l.builder.val(gradients[i]) : hone::full(l.builder, 0, l.x(i + 1).dtype(), l.x(i + 1).shape()));
  return results;
}

}  // namespace

constinit const OpDef gradient = {
    .name = "gradient",
    .doc = "for each x the derivative of the sum of y's elements with respect to it, as the graph before this node makes y of x; 0 where y does not depend on x",
    .inputs = {"y", "x..."},
    .results = {"dx..."},
    .infer = infer_gradient,
    .grad = no_gradient("it becomes a backward pass, which has gradients, before anything is differentiated"),
    .lower = lower_gradient,
};

}  // namespace hone::op
