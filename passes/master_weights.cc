#include "passes/master_weights.h"

#include <algorithm>
#include <set>

#include "ir/ops/ops.h"
#include "passes/input_replacement.h"

namespace hone {

namespace {

bool is_narrow_weight(const Graph& graph, const Input& input) {
  const DType dtype = graph.type(input.value).dtype;
  return input.data and (dtype == DType::kF16 or dtype == DType::kBF16);
}

class Masters : public InputReplacement {
 public:
  Masters(const Graph& graph, std::span<const std::string> trained) : InputReplacement(graph), trained_(trained.begin(), trained.end()) {}

  std::vector<NarrowedWeight> run(Graph& graph) {
    Graph made = replaced();
    if (not kept_.empty()) graph = std::move(made);
    return std::move(kept_);
  }

 private:
  Val replacement(const Input& input) override {
    if (not is_narrow_weight(graph_, input) or not trained_.contains(input.name)) return {};
    const Type& type = graph_.type(input.value);
    kept_.push_back({.name = input.name, .outside = type.dtype, .kept = DType::kF32});
    const Val master = builder_.input(input.role, input.name, {DType::kF32, type.shape}, input.data->cast(DType::kF32));
    const Builder::Scope scope(builder_, Loc{.derived = "weight " + input.name}, Part::kForward);
    return cast(master, type.dtype);
  }

  const std::set<std::string> trained_;
  std::vector<NarrowedWeight> kept_;
};

}  // namespace

bool has_narrow_weights(const Graph& graph) {
  return std::ranges::any_of(graph.inputs(), [&](const Input& input) { return is_narrow_weight(graph, input); });
}

std::vector<NarrowedWeight> keep_master_weights(Graph& graph, std::span<const std::string> trained) { return Masters(graph, trained).run(graph); }

}  // namespace hone
