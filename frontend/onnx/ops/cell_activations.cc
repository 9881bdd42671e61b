#include "frontend/onnx/ops/cell_activations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "frontend/onnx/ops/activation_formulas.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

struct CellFunction {
  std::string_view name;
  std::optional<double> alpha, beta;  ///< their defaults, for the functions that have them
  Val (*apply)(Val x, double alpha, double beta);
};
constexpr std::optional<double> kNone = std::nullopt;

constexpr CellFunction kCellFunctions[] = {
    {"Relu", kNone, kNone, [](Val x, double, double) { return op::relu(x); }},
    {"Tanh", kNone, kNone, [](Val x, double, double) { return op::tanh(x); }},
    {"Sigmoid", kNone, kNone, [](Val x, double, double) { return op::sigmoid(x); }},
    {"Affine", 1.0, 0.0, [](Val x, double alpha, double beta) { return x * alpha + beta; }},
    {"LeakyRelu", 0.01, kNone, [](Val x, double alpha, double) { return above_zero(x, x * alpha); }},
    {"ThresholdedRelu", 1.0, kNone,
     [](Val x, double alpha, double) { return thresholded_relu(x, alpha); }},
    {"ScaledTanh", 1.0, 1.0, [](Val x, double alpha, double beta) { return op::tanh(x * beta) * alpha; }},
    {"HardSigmoid", 0.2, 0.5,
     [](Val x, double alpha, double beta) { return hard_sigmoid(x, alpha, beta); }},
    {"Elu", 1.0, kNone, [](Val x, double alpha, double) { return elu(x, alpha); }},
    {"Softsign", kNone, kNone, [](Val x, double, double) { return x / (op::abs(x) + 1.0); }},
    {"Softplus", kNone, kNone, [](Val x, double, double) { return op::softplus(x); }},
};

/// Runtimes take the names in any case.
std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

const CellFunction& find_activation(const ImportNode& node, const std::string& name) {
  for (const CellFunction& row : kCellFunctions)
    if (lower_case(row.name) == lower_case(name)) return row;
  std::vector<std::string> names;
  for (const CellFunction& row : kCellFunctions) names.emplace_back(row.name);
  node.fail(Code::kBadAttribute, fmt::format("there is no activation {}", quoted(name)), {"there are " + join(names, ", ")});
}

/// Takes the next value, if this function has one.
double next_value(std::optional<double> absent, const std::vector<double>& values, std::size_t& next) {
  if (not absent) return 0;
  return next < values.size() ? values[next++] : *absent;
}

}  // namespace

std::vector<CellActivation> cell_activations(const ImportNode& node, const std::vector<std::string>& defaults, std::size_t directions) {
  std::vector<std::string> names = defaults;
  if (const AttributeProto* given = node.attribute("activations"); given != nullptr and given->strings_size() > 0)
    names.assign(given->strings().begin(), given->strings().end());
  if (const std::vector<std::string> one = names; one.size() == defaults.size())  // both directions have the same
    for (std::size_t i = 1; i < directions; ++i) names.insert(names.end(), one.begin(), one.end());
  node.require(names.size() == defaults.size() * directions, Code::kBadAttribute,
               fmt::format("{} activations, and must have {}", names.size(), defaults.size() * directions));
  const std::vector<double> alphas = node.reals("activation_alpha").value_or(std::vector<double>{}),
                            betas = node.reals("activation_beta").value_or(std::vector<double>{});
  std::size_t next_alpha = 0, next_beta = 0;
  std::vector<CellActivation> activations;
  for (const std::string& name : names) {
    const CellFunction& row = find_activation(node, name);
    const double alpha = next_value(row.alpha, alphas, next_alpha), beta = next_value(row.beta, betas, next_beta);
    activations.push_back({row.apply, alpha, beta});
  }
  return activations;
}

}  // namespace hone::onnx
