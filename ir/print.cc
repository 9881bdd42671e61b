#include "ir/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "ir/op.h"

namespace hone {

namespace {

constexpr std::int64_t kMostPrinted = 64;

std::string data_text(const Input& input, const Type& type) {
  const bool shown = input.data and is_printed(*input.data) and is_constant(type.shape) and input.data->dtype() == type.dtype and
                     shape_of(input.data->shape()) == type.shape;
  if (not shown) return input.role == Role::kInput and not input.data ? "" : " = elided";
  if (type.shape.empty()) return " = " + element_text(*input.data, 0);
  std::string text;
  for (std::int64_t i = 0; i < input.data->element_count(); ++i) text += (i > 0 ? ", " : "") + element_text(*input.data, i);
  return " = [" + text + "]";
}

/// As Attrs::text, with strings escaped so that they stay on one line.
std::string attrs_text(const Attrs& attrs) {
  std::string text;
  for (const auto& [name, attr] : attrs) {
    Attrs one;
    one.set(attr);
    if (one.text().empty()) continue;  // the empty value of its type
    const auto* string = std::get_if<std::string>(&attr.value);
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, string != nullptr ? hir_string(*string) : to_string(attr.value));
  }
  return text.empty() ? "" : " {" + text + "}";
}

std::string loc_text(const Loc& loc) {
  std::string text;
  if (not loc.node.empty()) text += " at " + hir_string(loc.node);
  if (not loc.layer.empty()) text += " of " + hir_string(loc.layer);
  if (not loc.derived.empty()) text += " from " + hir_string(loc.derived);
  return text.empty() ? "" : "  //" + text;
}

/// A graph as lines, and for each node its line.
class GraphPrinter {
 public:
  GraphPrinter(const Graph& graph, std::size_t indent) : graph_(graph), indent_(indent) { name_values(); }

  void print(const NodeComments& comments = {}) {
    line(fmt::format("graph {}(", name_text(graph_.name)));
    if (graph_.inputs().empty()) lines.back() += ") {";
    ++indent_;
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) line(input_text(graph_.inputs()[i]) + (i + 1 < graph_.inputs().size() ? "," : ") {"));
    Part part = Part::kForward;
    for (const Node& node : graph_.nodes()) {
      if (node.part != part) line("// " + std::string(to_string(part = node.part)));
      print_comments(comments);
      line_of_node.push_back(lines.size());
      print_node(node);
    }
    print_comments(comments);
    for (const std::string& equation : equation_texts()) line(equation);
    for (const Output& output : graph_.outputs()) line(fmt::format("output {} {}", hir_string(output.name), value_text(output.value)));
    for (const Alias& alias : graph_.aliases()) line(fmt::format("alias {} <- {}", value_text(alias.state), value_text(alias.value)));
    --indent_;
    line("}");
  }

  std::vector<std::string> lines;
  std::vector<std::size_t> line_of_node;

 private:
  void line(const std::string& text) { lines.push_back(std::string(2 * indent_, ' ') + text); }
  static std::string name_text(const std::string& name) { return is_plain_name(name) ? name : hir_string(name); }

  void print_comments(const NodeComments& comments) {
    const auto [first, end] = comments.equal_range(line_of_node.size());
    for (auto comment = first; comment != end; ++comment) line("// " + comment->second);
  }

  /// The names of all values, in the order in which the text defines them.
  void name_values() {
    std::map<std::string_view, int> uses;
    for (std::size_t i = 0; i < graph_.value_count(); ++i) ++uses[graph_.value(ValueId(i)).name];
    names_.resize(graph_.value_count());
    int number = 0;
    const auto name = [&](ValueId id) {
      if (id.index >= names_.size() or not names_[id.index].empty()) return;
      const std::string& own = graph_.value(id).name;
      names_[id.index] = own.empty() or uses[own] > 1 ? fmt::format("%{}", number++) : "%" + name_text(own);
    };
    for (const Input& input : graph_.inputs()) name(input.value);
    for (const Node& node : graph_.nodes())
      for (const ValueId result : node.results) name(result);
  }
  std::string value_text(ValueId id) const {
    if (not id.valid()) return "-";
    return id.index < names_.size() and not names_[id.index].empty() ? names_[id.index] : "%?";
  }
  std::string typed(ValueId id) const { return value_text(id) + (id.index < graph_.value_count() ? ": " + to_string(graph_.type(id)) : ""); }

  std::string input_text(const Input& input) const {
    std::string text = fmt::format("{} {}", to_string(input.role), typed(input.value));
    if (input.value.index >= graph_.value_count()) return text;
    text += data_text(input, graph_.type(input.value));
    const std::string& value_name = graph_.value(input.value).name;
    const bool numbered = value_text(input.value) != "%" + name_text(value_name);
    if (input.name != (numbered ? "" : value_name)) text += " " + hir_string(input.name);
    if (input.bounds) text += fmt::format(" in [{}, {})", input.bounds->first.text(), input.bounds->second.text());
    return text;
  }

  void print_node(const Node& node) {
    std::string results, operands;
    for (const ValueId result : node.results) results += (results.empty() ? "" : ", ") + typed(result);
    for (const ValueId operand : node.operands) operands += (operands.empty() ? "" : ", ") + value_text(operand);
    line(fmt::format("{} = {}({}){}", results, node.op->name, operands, attrs_text(node.attrs)));
    if (not node.bodies.empty()) lines.back() += " {";
    lines.back() += loc_text(node.loc);
    for (const auto& body : node.bodies) {  // depth is limited where bodies are made
      GraphPrinter nested(*body, indent_ + 1);
      nested.print();
      lines.insert(lines.end(), nested.lines.begin(), nested.lines.end());
    }
    if (not node.bodies.empty()) line("}");
  }

  /// Sorted, each once: their order says nothing.
  std::vector<std::string> equation_texts() const {
    std::vector<std::string> texts;
    for (const auto& [a, b] : graph_.equations()) {
      const auto [first, second] = std::minmax({a.text(), b.text()});
      texts.push_back(fmt::format("equation {} = {}", first, second));
    }
    std::ranges::sort(texts);
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    return texts;
  }

  const Graph& graph_;
  std::size_t indent_;
  std::vector<std::string> names_;
};

}  // namespace

std::string element_text(const Tensor& tensor, std::int64_t i) {
  if (tensor.dtype() == DType::kBool) return tensor.int_at(i) != 0 ? "true" : "false";
  if (tensor.dtype() == DType::kU64) return fmt::format("{}", static_cast<std::uint64_t>(tensor.int_at(i)));
  if (not is_float(tensor.dtype())) return fmt::format("{}", tensor.int_at(i));
  const double value = tensor.at(i);
  // fmt writes the shortest digits that read back to the same number of that type
  return tensor.dtype() == DType::kF64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
}

bool is_printed(const Tensor& data) { return data.element_count() <= kMostPrinted; }

std::string print(const Graph& graph, const NodeComments& comments) {
  GraphPrinter printer(graph, 0);
  printer.print(comments);
  std::string text;
  for (const std::string& line : printer.lines) text += line + '\n';
  return text;
}

std::string print_around(const Graph& graph, NodeId node, std::size_t lines) {
  GraphPrinter printer(graph, 0);
  printer.print();
  const std::size_t at = node.index < printer.line_of_node.size() ? printer.line_of_node[node.index] : printer.lines.size();
  const std::size_t first = at - std::min(at, lines), last = std::min(printer.lines.size(), at + lines + 1);
  std::string text;
  for (std::size_t i = first; i < last; ++i) text += (i == at ? "> " : "  ") + printer.lines[i] + '\n';
  return text;
}

std::string hir_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
      case '\\': (result += '\\') += c; break;
      case '\n': result += "\\n"; break;
      case '\t': result += "\\t"; break;
      case '\r': result += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 or c == 0x7f) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else result += c;
    }
  }
  return result + '"';
}

bool is_plain_name(std::string_view name) {
  if (name.empty() or std::isdigit(static_cast<unsigned char>(name[0])) or name.find("//") != std::string_view::npos) return false;
  return std::ranges::all_of(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) or c == '_' or c == '.' or c == '/' or c == '$'; });
}

}  // namespace hone
