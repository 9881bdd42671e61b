// Names that Identity nodes give to weights: PyTorch's TorchScript exporter merges initializers of equal contents so. What it merged are different parameters
// that a fresh model has equal values for, or one parameter in a form that was folded anew for each call of its layer (the transpose that a product wants, a
// cast).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/module_names.h"
#include "base/text.h"
#include "frontend/onnx/mend_model.h"

namespace hone::onnx {

namespace {

struct Alias {
  int node;  ///< the Identity
  std::string name;
};

/// Identity nodes over weights, by the weight's name.
std::map<std::string, std::vector<Alias>> find_aliases(const MendModel& m) {
  std::map<std::string, std::vector<Alias>> aliases;
  std::map<std::string, std::string> weight_of;  // an alias of an alias
  for (int i = 0; i < m.graph().node_size(); ++i) {
    const NodeProto& node = m.graph().node(i);
    if (node.op_type() != "Identity" or node.input_size() != 1 or node.output_size() != 1) continue;
    const auto known = weight_of.find(node.input(0));
    const std::string& weight = known == weight_of.end() ? node.input(0) : known->second;
    if (not m.is_weight(weight) or m.is_read_outside(node.output(0))) continue;
    weight_of.emplace(node.output(0), weight);
    aliases[weight].push_back({i, node.output(0)});
  }
  return aliases;
}

/// An embedding table and the product that shares it are one weight; frameworks tie them, and nothing else of that kind.
bool is_embedding_and_head(const MendModel& m, const std::string& weight, const std::vector<Alias>& aliases) {
  std::size_t gathered = m.is_read_by(weight, "Gather", 0), names = 1 + aliases.size();
  for (const Alias& alias : aliases) gathered += m.is_read_by(alias.name, "Gather", 0);
  return gathered > 0 and gathered < names;
}

constexpr const char* kHowToPart = "if they are different weights, name each of them in [model] train_only";

/// Which of the names of equal weights are one parameter, by the layers that read them.
class Parameters {
 public:
  explicit Parameters(const MendModel& m) : m_(m) {
    for (int i = 0; i < m.graph().node_size(); ++i)
      for (const std::string& name : m.graph().node(i).output()) made_by_.emplace(name, i);
  }

  /// The same for names of one parameter; nothing where there is no telling.
  std::optional<std::string> key(const std::string& name, const Tensor& values) const {
    if (not is_folded_name(name) or m_.is_trained_by_name(name) or m_.readers(name).empty()) return std::nullopt;
    std::set<std::string> keys;
    for (const Reader& reader : m_.readers(name)) {
      if (reader.node >= 0 and m_.graph().node(reader.node).op_type() == "Identity") continue;  // another alias
      if (reader.node < 0 or not m_.graph().node(reader.node).name().starts_with('/'))
        return std::nullopt;  // old exporters do not say which layer a node is of
      const NodeProto& node = m_.graph().node(reader.node);
      const std::string layer = without_calls(m_.loc(node).layer);
      // A vector added to products is the bias of their layer, and a bias that has kept its name tells the layer of a product.
      const std::set<std::string> beside = is_product(node) ? named_biases(node) : products_behind(node);
      // Other equal elements are a fresh model's. They say nothing of which layer they are, and where there is ln_1 and ln_2 but no ln, the numbers are names.
      if (all_elements_equal(values) and (is_product(node) or beside.empty()) and (layer.empty() or is_product(node) or not m_.has_layer(layer)))
        return std::nullopt;
      keys.insert(fmt::format("{} {} {} {}", layer, node.op_type(), reader.operand, fmt::join(beside, " ")));
    }
    return keys.size() == 1 ? std::optional(*keys.begin()) : std::nullopt;
  }

  /// From here on `alias` is the weight `name`.
  void are_one(const std::string& alias, const std::string& name) { name_of_.insert_or_assign(alias, name); }

 private:
  static bool is_product(const NodeProto& node) {
    constexpr std::string_view kProducts[] = {"MatMul", "Gemm", "Conv", "ConvTranspose"};
    return std::find(std::begin(kProducts), std::end(kProducts), node.op_type()) != std::end(kProducts) and node.input_size() > 1;
  }

  /// Names of parameters that are added to a product.
  std::set<std::string> named_biases(const NodeProto& product) const {
    std::set<std::string> names;
    if (product.input_size() > 2) names.insert(product.input(2));
    for (const Reader& reader : product.output_size() > 0 ? m_.readers(product.output(0)) : std::vector<Reader>())
      if (reader.node >= 0 and m_.graph().node(reader.node).op_type() == "Add" and m_.graph().node(reader.node).input_size() == 2)
        names.insert(m_.graph().node(reader.node).input(1 - reader.operand));
    std::erase_if(names, [&](const std::string& name) { return not is_named_parameter(name); });
    return names;
  }

  /// A weight by its own name, or by one that an Identity gives to it.
  bool is_named_parameter(const std::string& name) const {
    const auto made = made_by_.find(name);
    const NodeProto* node = made == made_by_.end() ? nullptr : &m_.graph().node(made->second);
    return not is_folded_name(name) and (node == nullptr ? m_.is_weight(name) : node->op_type() == "Identity" and m_.is_weight(node->input(0)));
  }

  /// The weights of the products that a node adds to, through what changes no number.
  std::set<std::string> products_behind(const NodeProto& node) const {
    constexpr std::string_view kPassed[] = {"Add", "Cast", "Reshape", "Transpose", "Squeeze", "Unsqueeze"};
    constexpr std::size_t kMost = 16;  // nodes: a layer's own, not those of a network of sums
    std::set<std::string> weights;
    std::vector<const NodeProto*> nodes = {&node};
    for (std::size_t i = 0; i < nodes.size() and i < kMost; ++i) {
      if (is_product(*nodes[i])) {
        const auto found = name_of_.find(nodes[i]->input(1));
        weights.insert(found == name_of_.end() ? nodes[i]->input(1) : found->second);
        continue;
      }
      if (std::find(std::begin(kPassed), std::end(kPassed), nodes[i]->op_type()) == std::end(kPassed)) continue;
      const int operands = nodes[i]->op_type() == "Add" ? nodes[i]->input_size() : std::min(nodes[i]->input_size(), 1);
      for (int k = 0; k < operands; ++k)
        if (const auto made = made_by_.find(nodes[i]->input(k)); made != made_by_.end()) nodes.push_back(&m_.graph().node(made->second));
    }
    return weights;
  }

  const MendModel& m_;
  std::map<std::string, int> made_by_;
  std::map<std::string, std::string> name_of_;
};

/// Names of equal weights that are one parameter; the first is the weight that it becomes.
using Names = std::vector<std::string>;

std::vector<Names> parameters_among(const Parameters& parameters, const std::string& weight, const std::vector<Alias>& aliases, const Tensor& values) {
  std::vector<Names> all = {{weight}};
  std::map<std::string, std::size_t> index;
  if (const auto key = parameters.key(weight, values)) index.emplace(*key, 0);
  for (const Alias& alias : aliases) {
    const auto key = parameters.key(alias.name, values);
    const auto found = key ? index.find(*key) : index.end();
    if (found != index.end()) {
      all[found->second].push_back(alias.name);
      continue;
    }
    if (key) index.emplace(*key, all.size());
    all.push_back({alias.name});
  }
  return all;
}

void keep_apart(MendModel& m, Parameters& parameters, const std::string& weight, const std::vector<Alias>& aliases, const Tensor& values) {
  const auto names_of = [](std::span<const Alias> some) {
    Names names;
    for (const Alias& alias : some) names.push_back(alias.name);
    return names;
  };
  const bool tied = m.is_tied_by_name(weight) or std::any_of(aliases.begin(), aliases.end(), [&](const Alias& alias) { return m.is_tied_by_name(alias.name); });
  if (tied or (not all_elements_equal(values) and is_embedding_and_head(m, weight, aliases))) {
    m.warn(fmt::format("the weight {} also goes by the names {}: they are trained as one", quoted(weight), list_of(names_of(aliases))), {});
    return;
  }
  std::map<std::string, int> identity_of;
  for (const Alias& alias : aliases) identity_of.emplace(alias.name, alias.node);
  Names apart;
  for (const Names& parameter : parameters_among(parameters, weight, aliases, values)) {
    const std::string& own = parameter.front();
    if (own != weight) {
      m.copy_weight(weight, own);
      m.remove_node(identity_of.at(own));
      apart.push_back(own);
    }
    if (parameter.size() == 1) continue;
    for (const std::string& name : std::span(parameter).subspan(1)) {
      m.redirect({identity_of.at(name), 0}, own);
      parameters.are_one(name, own);
    }
    m.warn(fmt::format("the weight {} also goes by the names {}: they are trained as one, as one layer reads them in several calls", quoted(own),
                       list_of({parameter.begin() + 1, parameter.end()})),
           {kHowToPart});
  }
  if (apart.empty()) return;
  m.warn(fmt::format("the weight {} also goes by the names {}: each of them is trained as a weight of its own", quoted(weight), list_of(apart)),
         {"exporters merge weights that are equal when they export, such as those of a fresh model",
          fmt::format("if they are one weight, say so: [model] tie = [{}]", quoted(weight))});
}

}  // namespace

bool keep_aliases_apart(MendModel& m) {
  Parameters parameters(m);
  const auto all = find_aliases(m);
  // Which layer a bias belongs to is told by its weight, so that comes first. Biases have one axis, or several of which one has more than one element.
  const auto is_vector = [](const Tensor& values) {
    return std::count_if(values.shape().begin(), values.shape().end(), [](std::int64_t extent) { return extent != 1; }) <= 1;
  };
  for (const bool vectors : {false, true})
    for (const auto& [weight, aliases] : all)
      if (const auto values = m.values(weight); values and is_vector(*values) == vectors) keep_apart(m, parameters, weight, aliases, *values);
  return not all.empty();
}

void tie_calls(MendModel& m) {
  const Parameters parameters(m);
  std::map<std::string, std::vector<std::pair<std::string, Tensor>>> weights;  // that differ, by what their readers tell
  for (const std::string& name : m.weights()) {
    const auto values = is_folded_name(name) ? m.values(name) : std::nullopt;
    const auto key = values and not all_elements_equal(*values) ? parameters.key(name, *values) : std::nullopt;
    if (not key) continue;
    auto& known = weights[*key];
    const auto equal = std::find_if(known.begin(), known.end(), [&](const auto& weight) { return are_equal(weight.second, *values); });
    if (equal == known.end()) {
      known.emplace_back(name, *values);
      continue;
    }
    m.derive_weight(name, equal->first, "Identity");
    m.warn(fmt::format("the weight {} is {}: they are trained as one, as one layer reads them in several calls", quoted(name), quoted(equal->first)),
           {kHowToPart});
  }
}

}  // namespace hone::onnx
