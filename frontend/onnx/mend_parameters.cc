// Weights that were merged with their names lost, told apart by the exporter's record of which parameters each call took.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "frontend/onnx/mend_model.h"

namespace hone::onnx {

namespace {

/// Readers of one weight whose calls share parameters: a tied weight goes by one parameter in all of its calls.
struct Use {
  std::set<std::string> parameters;
  std::vector<Reader> readers;
};

bool share_any(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

/// Who reads what a node gives, by the module that they are of.
std::map<std::string, std::vector<Reader>> readers_by_module(const MendModel& m, const NodeProto& node) {
  std::map<std::string, std::vector<Reader>> modules;
  for (const std::string& output : node.output())
    for (const Reader& reader : m.readers(output)) modules[reader.node < 0 ? "" : ExportedProgram::module_of(m.graph().node(reader.node))].push_back(reader);
  return modules;
}

/// The exporter says nothing of some nodes, such as the Split of a cross-attention's biases: what they read is the parameter of that name in the module that reads what they give.
std::string parameter_like(const MendModel& m, const std::string& own, const std::string& module) {
  std::string name = fmt::format("{}.{}", module, last_part(own));
  return not module.empty() and m.program().has_parameter(name) ? name : "";
}

std::set<std::string> parameters_read_by(const MendModel& m, const NodeProto& node, const std::string& own) {
  std::set<std::string> parameters = m.program().parameters_of(node);
  if (not parameters.empty() or not ExportedProgram::module_of(node).empty()) return parameters;
  const auto modules = readers_by_module(m, node);
  if (modules.size() == 1)
    if (std::string name = parameter_like(m, own, modules.begin()->first); not name.empty()) parameters.insert(std::move(name));
  return parameters;
}

/// Readers that the exporter says nothing about are in no use.
std::vector<Use> uses_of(const MendModel& m, const std::string& weight, const std::string& own) {
  std::vector<Use> uses;
  for (const Reader& reader : m.readers(weight)) {
    if (reader.node < 0) continue;
    Use use{parameters_read_by(m, m.graph().node(reader.node), own), {reader}};
    if (use.parameters.empty()) continue;
    for (auto other = uses.begin(); other != uses.end();) {
      if (not share_any(use.parameters, other->parameters)) {
        ++other;
        continue;
      }
      use.parameters.insert(other->parameters.begin(), other->parameters.end());
      use.readers.insert(use.readers.end(), other->readers.begin(), other->readers.end());
      other = uses.erase(other);
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

/// The parameter of a use that the file has nowhere, so that it must be what was merged; one that is called as `own` is in its module comes first. "" if there is none.
std::string merged_parameter(const MendModel& m, const Use& use, const std::string& own) {
  std::string merged;
  for (const std::string& parameter : use.parameters) {
    if (m.program().is_in_file(parameter)) continue;
    if (last_part(parameter) == last_part(own)) return parameter;
    if (merged.empty()) merged = parameter;
  }
  return merged;
}

struct Parted {
  std::vector<std::string> weights, copies;
};

void keep_apart(MendModel& m, const std::string& weight, Parted& parted) {
  const std::set<std::string>& in_it = m.program().parameters_in(weight);
  if (in_it.size() != 1 or m.is_tied_by_name(weight)) return;
  const std::string own = *in_it.begin();
  const std::vector<Use> uses = uses_of(m, weight, own);
  // Unless some call takes the weight's own parameter directly, what the calls take says nothing about it.
  if (uses.size() < 2 or std::none_of(uses.begin(), uses.end(), [&](const Use& use) { return use.parameters.contains(own); })) return;
  const std::size_t before = parted.copies.size();
  for (const Use& use : uses) {
    if (use.parameters.contains(own)) continue;
    const std::string parameter = merged_parameter(m, use, own);
    if (parameter.empty()) continue;
    std::string name = weight == own and m.is_free(parameter) ? parameter : fmt::format("{}@{}", weight, parameter);
    if (not m.is_free(name)) name += fmt::format(":{}", use.readers[0].node);
    m.copy_as(weight, name, Origin::kParameter, {parameter});
    for (const Reader& reader : use.readers) m.redirect(reader, name);
    parted.copies.push_back(std::move(name));
  }
  if (parted.copies.size() > before) parted.weights.push_back(weight);
}

/// A node that several modules' parameters became one for, together with the node that read each, is one for each module again.
void part_unrecorded_readers(MendModel& m) {
  std::set<int> seen;
  for (const std::string& weight : m.weights()) {
    const std::set<std::string>& in_it = m.program().parameters_in(weight);
    if (in_it.size() != 1 or m.is_tied_by_name(weight)) continue;
    for (const Reader& reader : m.readers(weight)) {
      if (reader.node < 0 or not ExportedProgram::module_of(m.graph().node(reader.node)).empty() or not seen.insert(reader.node).second) continue;
      const auto modules = readers_by_module(m, m.graph().node(reader.node));
      const auto is_told = [&](const auto& module) { return not parameter_like(m, *in_it.begin(), module.first).empty(); };
      if (modules.size() < 2 or not std::all_of(modules.begin(), modules.end(), is_told)) continue;
      for (auto module = std::next(modules.begin()); module != modules.end(); ++module) m.copy_node(reader.node, module->second);
    }
  }
}

// --- Biases that were left out because they were zero ---

bool may_lack_bias(const NodeProto& node) {
  return (node.op_type() == "Conv" or node.op_type() == "ConvTranspose" or node.op_type() == "Gemm") and node.domain().empty() and node.input_size() == 2;
}

/// Elements of biases, by name.
using Biases = std::map<std::string, std::int64_t>;

/// The bias that the node's call took and the file has nowhere, or one that another call of the layer got back; "" if there is none.
std::string lost_bias(const MendModel& m, const NodeProto& node, const Biases& restored) {
  const auto is_lost = [&](const std::string& parameter) { return restored.contains(parameter) or (not m.program().is_in_file(parameter) and m.is_free(parameter)); };
  if (const std::string bias = m.program().bias_of(node); not bias.empty()) return is_lost(bias) ? bias : "";
  for (const std::string& parameter : m.program().parameters_of(node))
    if ((restored.contains(parameter) or last_part(parameter).ends_with("bias")) and is_lost(parameter)) return parameter;
  return "";
}

/// The initializer of zeros that is the node's bias, which others read, too; "" if there is none.
std::string bias_in_file(const MendModel& m, const NodeProto& node, std::int64_t extent) {
  std::string bias = m.program().bias_of(node);
  if (bias.empty() or m.program().parameters_in(bias) != std::set<std::string>{bias}) return "";
  const auto values = m.values(bias);
  const bool is_bias = values and values->dtype() == DType::kF32 and values->shape() == std::vector<std::int64_t>{extent} and all_elements_equal(*values) and values->at(0) == 0;
  return is_bias ? bias : "";
}

}  // namespace

void restore_biases(MendModel& m) {
  Biases restored;
  for (int i = 0; i < m.graph().node_size(); ++i) {
    const NodeProto& node = m.graph().node(i);
    if (not may_lack_bias(node) or not m.is_weight(node.input(1))) continue;
    const TensorProto& weight = *m.initializer(node.input(1));
    const std::int64_t extent = bias_extent(node, weight);
    constexpr std::int64_t kMost = std::int64_t{1} << 24;
    if (extent <= 0 or extent > kMost or weight.data_type() != TensorProto::FLOAT) continue;
    if (const std::string name = bias_in_file(m, node, extent); not name.empty()) {
      m.set_bias(i, name);
      continue;
    }
    const std::string name = lost_bias(m, node, restored);
    if (name.empty()) continue;
    const auto [known, is_new] = restored.emplace(name, extent);
    if (is_new) {
      TensorProto bias;
      store_tensor(&bias, Tensor::zeros(DType::kF32, {extent}));
      bias.set_name(name);
      m.add_parameter(std::move(bias), name);
    }
    if (known->second == extent) m.set_bias(i, name);
  }
  std::vector<std::string> names;
  for (const auto& [name, extent] : restored) names.push_back(name);
  if (not names.empty())
    m.warn(fmt::format("the exporter left out {} bias{} that {} zero, by its own record: {}; restored and trained", names.size(), names.size() == 1 ? "" : "es",
                       names.size() == 1 ? "was" : "were", list_of(names)),
           {});
}

void keep_parameters_apart(MendModel& m) {
  part_unrecorded_readers(m);
  m.finish();
  Parted parted;
  for (const std::string& weight : m.weights())
    if (m.readers(weight).size() > 1) keep_apart(m, weight, parted);
  if (parted.weights.empty()) return;
  m.warn(fmt::format("{} stood for several parameters each that were equal when exported: they are trained apart, as {} too", list_of(parted.weights), list_of(parted.copies)),
         {"the exporter merged them, and its record of what each node was tells which is which",
          fmt::format("if they are one weight, say so: [model] tie = [{}]", quoted(parted.weights[0]))});
}

}  // namespace hone::onnx
