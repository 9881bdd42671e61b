#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/philox.h"
#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {

struct Fans {
  double in, out;
};

/// Matrices that the model reads transposed: [out, in], as PyTorch keeps those of its linear layers.
std::set<ValueId> read_transposed(const Graph& graph) {
  std::set<ValueId> transposes, weights;
  for (const Node& node : graph.nodes()) {
    if (node.part != Part::kForward) continue;
    if (*node.op == op::transpose and node.attrs[kPerm] == Ints{1, 0}) transposes.insert(node.results[0]);
    if (*node.op != op::matmul) continue;
    const ValueId right = node.operands[1];
    if (node.attrs[kTransB]) weights.insert(right);
    else if (transposes.contains(right)) weights.insert(graph.producer(right).operands[0]);
  }
  return weights;
}

/// [in, out] for matrices, unless they are read transposed; [out, in, window...] for convolutions, each element of the window counting.
Fans fans_of(const std::vector<std::int64_t>& shape, bool transposed) {
  if (shape.size() < 2) return {static_cast<double>(shape.empty() ? 1 : shape[0]), 1};
  if (shape.size() == 2) return {static_cast<double>(shape[transposed ? 1 : 0]), static_cast<double>(shape[transposed ? 0 : 1])};
  double window = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) window *= static_cast<double>(shape[i]);
  return {static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
}

enum class Drawn : std::uint8_t {
  kUniform,
  kNormal,
  kNormalByFans,  ///< Keras cuts it off (VarianceScaling), PyTorch does not (kaiming_normal_)
};

struct Initializer {
  std::string_view kind;
  Drawn drawn;
  double (*scale)(Fans);  ///< standard deviation, or half the width of the uniform range
};
/// He et al. 2015, Glorot & Bengio 2010.
constexpr Initializer kInitializers[] = {
    {"he_normal", Drawn::kNormalByFans, [](Fans f) { return std::sqrt(2 / f.in); }},
    {"he_uniform", Drawn::kUniform, [](Fans f) { return std::sqrt(6 / f.in); }},
    {"glorot_normal", Drawn::kNormalByFans, [](Fans f) { return std::sqrt(2 / (f.in + f.out)); }},
    {"glorot_uniform", Drawn::kUniform, [](Fans f) { return std::sqrt(6 / (f.in + f.out)); }},
    {"normal", Drawn::kNormal, [](Fans) { return 0.05; }},
    {"zeros", Drawn::kUniform, [](Fans) { return 0.0; }},
};

/// A normal number that is drawn again where it lies two deviations or more from 0, made wider so that its deviation is 1 all the same.
double truncated_normal(std::uint64_t key, std::uint64_t stream, std::uint64_t element) {
  constexpr double kDeviation = 0.87962566103423978;  // of a standard normal distribution between -2 and 2
  for (std::uint64_t attempt = 0;; ++attempt)
    if (const double number = philox_normal(key, stream + (attempt << 32), element); std::abs(number) < 2) return number / kDeviation;
}

/// `element(i)` for every element, written where it stays: weights are large.
template <typename T, typename Element>
Tensor drawn(const std::vector<std::int64_t>& shape, Element&& element) {
  return Tensor::make(kDTypeOf<T>, shape, [&](std::span<std::byte> bytes) {
    T* values = reinterpret_cast<T*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) values[i] = static_cast<T>(element(i));
  });
}

}  // namespace

void initialize_weights(Graph& graph, const Recipe& recipe, std::span<const TrainedWeight> weights) {
  if (recipe.model.initialize == "keep") return;
  const Initializer* found = nullptr;
  for (const Initializer& initializer : kInitializers)
    if (initializer.kind == recipe.model.initialize) found = &initializer;
  if (found == nullptr) throw Error(Code::kRecipeValue, fmt::format("model.initialize = \"{}\" is not known", recipe.model.initialize));
  const bool is_cut_off = found->drawn == Drawn::kNormalByFans and recipe.train.convention == Convention::kKeras;
  const std::set<ValueId> transposed = read_transposed(graph);
  Builder builder(graph);
  for (std::size_t w = 0; w < weights.size(); ++w) {
    const Type& type = graph.type(weights[w].value);
    if (type.shape.size() < 2) continue;  // scales and biases keep what the file has
    const std::vector<std::int64_t> shape = constant_shape(type.shape);
    const double scale = found->scale(fans_of(shape, transposed.contains(weights[w].value)));
    const auto element = [&](std::size_t i) {
      const auto seed = static_cast<std::uint64_t>(recipe.train.seed);
      if (found->drawn == Drawn::kUniform) return scale * (2 * philox_uniform(seed, w, i).first - 1);
      return scale * (is_cut_off ? truncated_normal : philox_normal)(seed, w, i);
    };
    builder.set_input_data(weights[w].value, type.dtype == DType::kF32 ? drawn<float>(shape, element) : drawn<double>(shape, element).cast(type.dtype));
  }
}

}  // namespace hone
