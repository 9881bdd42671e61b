// Losses.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

/// Scores and classes alike: `data` with the classes along axis 1, targets of the other axes.
struct LossCase {
  std::string says;
  std::vector<Extent> data;
  std::vector<GradientAttribute> attributes = {};
  bool weights = false;
  std::vector<double> targets = {};
};

const LossCase kLossCases[] = {
    {"rows", {3, 4}},
    {"the sum", {3, 4}, {{"reduction", "sum"}}},
    {"each one", {3, 4}, {{"reduction", "none"}}},
    {"weights", {4, 3}, {}, true},
    {"weights, the sum", {4, 3}, {{"reduction", "sum"}}, true},
    {"weights, each one", {2, 3, 2}, {{"reduction", "none"}}, true},
    {"an ignored class", {4, 3}, {{"ignore_index", 1}}, false, {0, 1, 2, 1}},
    {"an ignored number that is no class", {3, 4}, {{"ignore_index", -100}}, false, {3, -100, 0}},
    {"an ignored class and weights", {4, 3}, {{"ignore_index", 2}}, true, {0, 1, 2, 1}},
    {"an ignored class, each one", {3, 3}, {{"ignore_index", 0}, {"reduction", "none"}}, false, {0, 1, 2}},
    {"a spatial axis", {2, 3, 4}},
    {"images", {2, 3, 2, 2}, {{"reduction", "sum"}}},
    {"rank 5 with weights", {1, 3, 2, 1, 2}, {}, true},
    {"a symbolic batch", {"N", 4}},
    {"a symbolic batch and weights", {"N", 3, "M"}, {}, true},
};

GradientInput targets_of(const LossCase& c) {
  std::vector<Extent> shape = c.data;
  shape.erase(shape.begin() + 1);
  const auto classes = static_cast<double>(std::get<std::int64_t>(c.data[1]));
  return c.targets.empty() ? whole(shape, 0, classes - 1) : given(DType::kI64, shape, c.targets);
}

void add_losses(GradientCases& cases, const std::string& op, double low, double high) {
  for (const LossCase& c : kLossCases) {
    std::vector<GradientInput> inputs = {x(c.data, low, high), targets_of(c)};
    if (c.weights) inputs.push_back(fed(x({c.data[1]}, 0.2, 2)));
    cases.add(op, c.says, std::move(inputs), c.attributes);
  }
  cases.add(op, "targets of 32 bits", {x({3, 4}, low, high), whole({3}, 0, 3, DType::kI32)});
  cases.add(op, "weights that are learned", {x({3, 4}, low, high), given(DType::kI64, {3}, {0, 3, 1}), x({4}, 0.5, 2)});
}

}  // namespace

void add_loss_cases(GradientCases& cases) {
  add_losses(cases, "NegativeLogLikelihoodLoss", -3, -0.1);
  add_losses(cases, "SoftmaxCrossEntropyLoss", -2, 2);
  cases.add("SoftmaxCrossEntropyLoss", "log probabilities, too", {x({3, 4}), whole({3}, 0, 3)}).outputs(2);
  cases.add("SoftmaxCrossEntropyLoss", "log probabilities of images, too", {x({2, 3, 2, 2}), whole({2, 2, 2}, 0, 2), fed(x({3}, 0.2, 2))}).outputs(2);
}

}  // namespace hone::test
