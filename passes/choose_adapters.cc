// Which matrices get low-rank adapters.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "base/patterns.h"
#include "base/text.h"
#include "ir/ops/ops.h"
#include "passes/adapters.h"
#include "passes/matrix_views.h"

namespace hone {

namespace {

/// A weight of the model that a pattern may mean.
struct Candidate {
  const Input* input = nullptr;
  std::vector<std::string> nodes;  ///< that read it, by all of their names
  bool in_product = false;
  int convolutions = 0, others = 0;  ///< of one group, that have it as their weight; and other readers
  bool outputs_first = false;  ///< as its first product reads it
  bool is_output = false;      ///< of the model
};

/// "/encoder/layer.0/q_proj/MatMul" -> "encoder.layer.0.q_proj.MatMul"
std::string with_dots(std::string name) {
  std::replace(name.begin(), name.end(), '/', '.');
  return name.starts_with('.') ? name.substr(1) : name;
}

void add_names(const Node& node, std::vector<std::string>& names) {
  for (const std::string& name : {node.loc.node, node.loc.layer}) {
    if (name.empty()) continue;
    for (const std::string& each : {name, with_dots(name)})
      if (std::find(names.begin(), names.end(), each) == names.end()) names.push_back(each);
  }
}

/// The float weights of the model, in the order of its inputs, with who reads them.
std::vector<Candidate> candidates_of(const Graph& graph) {
  std::vector<Candidate> candidates;
  std::vector<std::size_t> number(graph.value_count(), graph.inputs().size());
  for (const Input& input : graph.inputs()) {
    if (input.role != Role::kWeight or not input.data or input.name.empty() or not is_float(graph.type(input.value).dtype)) continue;
    number[input.value.index] = candidates.size();
    candidates.push_back({.input = &input});
  }
  const MatrixViews views(graph);
  for (const Node& node : graph.nodes()) {
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const auto view = views.find(node.operands[i]);
      const ValueId read = view ? view->weight : node.operands[i];
      if (not read.valid() or number[read.index] == graph.inputs().size()) continue;
      Candidate& candidate = candidates[number[read.index]];
      add_names(node, candidate.nodes);
      (*node.op == op::conv and i == 1 and node.attrs[kGroups] == 1 ? candidate.convolutions : candidate.others) += 1;
      if (candidate.in_product or not view) continue;
      candidate.in_product = *node.op == op::matmul or not node.bodies.empty();
      candidate.outputs_first = *node.op == op::matmul and is_transposed(node, i, *view) == (i == 1);
    }
  }
  for (const Output& output : graph.outputs())
    if (number[output.value.index] < candidates.size()) candidates[number[output.value.index]].is_output = true;
  return candidates;
}

bool is_of_convolution(const Candidate& candidate) { return candidate.convolutions > 0 and candidate.others == 0; }
bool is_matrix(const Graph& graph, const Candidate& candidate) { return graph.type(candidate.input->value).shape.size() == 2 or is_of_convolution(candidate); }
/// Is it read by what multiplies by it?
bool is_multiplied(const Candidate& candidate) { return candidate.in_product or is_of_convolution(candidate); }

bool is_meant(const std::string& pattern, const Candidate& candidate) {
  return matches_name(pattern, candidate.input->name) or
         std::any_of(candidate.nodes.begin(), candidate.nodes.end(), [&](const std::string& name) { return matches_name(pattern, name); });
}

/// Why a weight that a pattern means gets no adapter; "" if it gets one.
std::string why_not(const Graph& graph, const Candidate& candidate, const std::string& pattern) {
  const std::string name = quoted(candidate.input->name);
  if (not is_matrix(graph, candidate)) return fmt::format("{} is {}, and adapters are for matrices, of rank 2, and for weights that only convolutions of one group read", name, to_string(graph.type(candidate.input->value)));
  if (candidate.is_output) return fmt::format("{} is an output of the model, which would show it without its adapter", name);
  if (not is_multiplied(candidate) and pattern != candidate.input->name) return fmt::format("{} is read by no product: name it whole, without *, if it is meant", name);
  return "";
}

/// "the matrices: "fc.weight" (read by "fc/MatMul"), ..."
std::string list_of_matrices(const Graph& graph, const std::vector<Candidate>& candidates) {
  constexpr std::size_t kShown = 20;
  std::string text;
  std::size_t count = 0;
  for (const Candidate& candidate : candidates) {
    if (not is_matrix(graph, candidate) or not is_multiplied(candidate)) continue;
    if (++count > kShown) continue;
    text += (count == 1 ? "" : ", ") + quoted(candidate.input->name);
    if (not candidate.nodes.empty()) text += fmt::format(" (read by {})", quoted(candidate.nodes.back()));
  }
  if (count == 0) return "the model has no matrix that a product reads";
  return "matrices that products read: " + text + (count > kShown ? fmt::format(" and {} more", count - kShown) : "");
}

[[noreturn]] void refuse_target(const Graph& graph, const std::string& pattern, const std::vector<Candidate>& candidates, const std::vector<std::string>& reasons) {
  std::vector<std::string> names, notes;
  for (const Candidate& candidate : candidates) {
    if (not is_matrix(graph, candidate)) continue;
    names.push_back(candidate.input->name);
    names.insert(names.end(), candidate.nodes.begin(), candidate.nodes.end());
  }
  if (reasons.empty()) {
    if (std::string hint = did_you_mean(pattern, names); not hint.empty()) notes.push_back(std::move(hint));
  } else {
    notes = reasons;
  }
  notes.push_back(list_of_matrices(graph, candidates));
  if (reasons.empty()) notes.emplace_back("a pattern means a weight's name, or that of a node that reads it, whole: * stands for anything, as in \"*q_proj*\"");
  throw Error(Code::kRecipeModel, fmt::format("lora.targets: {} {}", quoted(pattern), reasons.empty() ? "matches no weight of the model" : "matches no weight that can have an adapter"), {},
              std::move(notes));
}

/// By candidate: does it get an adapter?
std::vector<bool> targets_of(const Graph& graph, const Recipe& recipe, const std::vector<Candidate>& candidates) {
  std::vector<bool> chosen(candidates.size());
  for (const std::string& pattern : recipe.lora.targets) {
    std::vector<std::string> reasons;
    bool any = false;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (not is_meant(pattern, candidates[i])) continue;
      const std::string reason = why_not(graph, candidates[i], pattern);
      if (not reason.empty() and reasons.size() < 5) reasons.push_back(reason);
      if (reason.empty()) any = chosen[i] = true;
    }
    if (not any) refuse_target(graph, pattern, candidates, reasons);
  }
  return chosen;
}

void check_rank(const Graph& graph, const Candidate& candidate, std::int64_t rank) {
  const std::vector<std::int64_t> shape = constant_shape(graph.type(candidate.input->value).shape);
  const std::int64_t most = std::min(shape[0], std::accumulate(shape.begin() + 1, shape.end(), std::int64_t{1}, std::multiplies<>()));
  if (rank > most)
    throw Error(Code::kRecipeModel, fmt::format("lora.rank = {} is more than the matrix {} has: it is {}", rank, quoted(candidate.input->name), to_string(graph.type(candidate.input->value))), {},
                {fmt::format("take at most {}, or leave that matrix out of lora.targets", most)});
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return name.size() > end.size() and name.ends_with(end); });
}

/// The module whose weight it is, as PyTorch writes paths: the weight's own name without its last part; where an exporter has renamed it (onnx::MatMul_12, val_7), that of the node that reads it.
std::string module_of(const Candidate& candidate) {
  const std::string& name = candidate.input->name;
  const auto parent = [](std::string path) { return path.substr(0, path.rfind('.')); };
  if (ends_with_any(name, {".weight", ".kernel", "/weight", "/kernel", "/embeddings"})) return parent(with_dots(name));
  for (const std::string& node : candidate.nodes)
    if (const std::string path = with_dots(node); path.find('.') != std::string::npos) return ends_with_any(path, {".MatMul", ".Gemm", ".Gather", ".Conv", ".Transpose"}) ? parent(path) : path;
  return with_dots(name);
}

/// The modules of the candidates that were chosen, by candidate. Where two would share one (their weights were renamed, and one node reads both) each is called as its weight is.
std::vector<std::string> modules_of(const std::vector<Candidate>& candidates, const std::vector<bool>& chosen) {
  std::vector<std::string> modules(candidates.size());
  std::map<std::string, int> uses;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (chosen[i]) ++uses[modules[i] = module_of(candidates[i])];
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (chosen[i] and uses[modules[i]] > 1) modules[i] = candidates[i].input->name;
  return modules;
}

/// An adapter's matrix stays as it is, so nothing else can be said of its training.
void check_conflicts(const Recipe& recipe, const std::string& name) {
  const auto refuse = [&](const char* key, const std::vector<std::string>& patterns, const char* way_out) {
    for (const std::string& pattern : patterns)
      if (matches_name(pattern, name))
        throw Error(Code::kRecipeModel, fmt::format("{}: {} names the weight {}, which lora.targets gives an adapter", key, quoted(pattern), quoted(name)), {}, {way_out});
  };
  refuse("model.freeze", recipe.model.freeze, "with an adapter it stays as it is anyway: leave it out of model.freeze; or leave it out of lora.targets, if it shall have no adapter");
  refuse("model.train_only", recipe.model.train_only, "it is trained by its adapter or itself: leave it out of lora.targets or of model.train_only");
}

}  // namespace

std::vector<Adapter> choose_adapters(const Graph& imported, const Recipe& recipe) {
  const std::vector<Candidate> candidates = candidates_of(imported);
  const std::vector<bool> chosen = targets_of(imported, recipe, candidates);
  const std::vector<std::string> modules = modules_of(candidates, chosen);
  std::vector<Adapter> adapters;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (not chosen[i]) continue;
    const std::string& name = candidates[i].input->name;
    check_rank(imported, candidates[i], recipe.lora.rank);
    check_conflicts(recipe, name);
    const std::string module = "base_model.model." + modules[i] + (is_multiplied(candidates[i]) ? ".lora_" : ".lora_embedding_"), end = is_multiplied(candidates[i]) ? ".weight" : "";
    const Adapter& made = adapters.emplace_back(Adapter{.weight = name,
                                                        .a = name + kAdapterA,
                                                        .b = name + kAdapterB,
                                                        .exported_a = module + "A" + end,
                                                        .exported_b = module + "B" + end,
                                                        .of_convolution = is_of_convolution(candidates[i]),
                                                        .outputs_first = candidates[i].outputs_first,
                                                        .scale = recipe.lora.alpha / static_cast<double>(recipe.lora.rank)});
    for (const std::string& other : {made.a, made.b})
      if (imported.find_input(other) != nullptr)
        throw Error(Code::kRecipeModel, fmt::format("lora.targets: the model has a {} already", quoted(other)), {},
                    {"it has adapters of its own: train them with model.train_only, or merge them into the model first"});
  }
  return adapters;
}

}  // namespace hone
