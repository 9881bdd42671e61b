#include "ir/parse.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <map>

#include "base/float_format.h"
#include "base/limits.h"
#include "base/text.h"
#include "ir/builder.h"
#include "ir/kernel/scalar_math.h"
#include "ir/op.h"
#include "ir/scanner.h"
#include "ir/verify.h"

namespace hone {

namespace {

constexpr Role kRoles[] = {Role::kInput, Role::kWeight, Role::kState, Role::kConstant};
constexpr Part kParts[] = {Part::kForward, Part::kLoss, Part::kBackward, Part::kAllReduce, Part::kUpdate};

/// All of `text` as a T.
template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() and end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

template <typename T>
std::optional<std::string> bytes_of(std::optional<T> value) {
  if (not value) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(&*value), sizeof(T));
}

/// The bytes of one element.
std::optional<std::string> element_bytes(DType dtype, std::string_view text) {
  if (is_storage_only(dtype)) {
    std::string bytes(size_of(dtype), '\0');
    const auto value = number<double>(text);
    if (not value or (not is_float(dtype) and static_cast<double>(scalar_math::to_integer(dtype, *value)) != *value)) return std::nullopt;
    if (is_float(dtype)) write_storage(dtype, bytes.data(), *value);
    else bytes[0] = static_cast<char>(*value);
    return bytes;
  }
  switch (dtype) {
    case DType::kF32: return bytes_of(number<float>(text));
    case DType::kF64: return bytes_of(number<double>(text));
    case DType::kI8: return bytes_of(number<std::int8_t>(text));
    case DType::kI16: return bytes_of(number<std::int16_t>(text));
    case DType::kI32: return bytes_of(number<std::int32_t>(text));
    case DType::kI64: return bytes_of(number<std::int64_t>(text));
    case DType::kU8: return bytes_of(number<std::uint8_t>(text));
    case DType::kU16: return bytes_of(number<std::uint16_t>(text));
    case DType::kU32: return bytes_of(number<std::uint32_t>(text));
    case DType::kU64: return bytes_of(number<std::uint64_t>(text));
    case DType::kBool: return text == "true" or text == "false" ? bytes_of(std::optional<std::uint8_t>(text == "true")) : std::nullopt;
    default: return std::nullopt;
  }
}

class GraphParser {
 public:
  GraphParser(Scanner& scanner, int depth) : scanner_(scanner), depth_(depth), builder_(graph_) { follow_comments(); }

  Graph parse() {
    scanner_.expect("graph");
    graph_.name = scanner_.name("the graph's name");
    scanner_.expect("(");
    while (not scanner_.take(")")) {
      parse_input();
      if (not scanner_.take(",") and not scanner_.at(")")) scanner_.fail_expected("\",\" or \")\" after an input");
    }
    scanner_.expect("{");
    while (not scanner_.take("}")) parse_statement();
    return std::move(graph_);
  }

 private:
  /// A comment may say which part of the step comes next.
  void follow_comments() {
    scanner_.on_comment_line = [this](std::string_view comment) {
      for (const Part part : kParts)
        if (to_string(part) == comment) part_ = part;
    };
  }

  /// A value as it stands in the text; `name` is empty for a numbered one.
  struct Name {
    std::string key;
    std::string name;
    Loc loc;
  };
  struct Result {
    Name name;
    std::optional<Type> type;
  };

  Name parse_name() {
    Name name;
    name.loc = scanner_.loc();
    scanner_.expect("%");
    const bool quoted_name = scanner_.at("\"");
    name.name = name.key = scanner_.name("a value's name or number");
    if (not quoted_name and number<std::uint64_t>(name.name)) {
      name.key = "#" + name.name;  // apart from a value whose quoted name is a number
      name.name.clear();
    }
    return name;
  }

  void define(const Name& name, Val value) {
    if (not values_.emplace(name.key, value.id()).second) Scanner::fail(fmt::format("{} is defined twice", text_of(name)), name.loc);
    builder_.set_name(value, name.name);
  }

  static std::string text_of(const Name& name) { return name.name.empty() ? "%" + name.key.substr(1) : quoted(name.name); }

  Val parse_value() {
    const Name name = parse_name();
    const auto found = values_.find(name.key);
    if (found != values_.end()) return builder_.val(found->second);
    std::vector<std::string> names;
    for (const auto& [key, id] : values_) names.push_back(key);
    Scanner::fail(fmt::format("{} is not defined before this place", text_of(name)), name.loc, {did_you_mean(name.key, names)});
  }

  DType parse_dtype() {
    const Loc where = scanner_.loc();
    const std::string word = scanner_.name("an element type");
    if (const std::optional<DType> dtype = dtype_from_name(word)) return *dtype;
    std::vector<std::string> names;
    for (int i = 0; i < kDTypeCount; ++i) names.emplace_back(to_string(static_cast<DType>(i)));
    Scanner::fail(fmt::format("expected an element type, found {}", quoted(word)), where, {did_you_mean(word, names)});
  }

  Shape parse_dims() {
    Shape shape;
    scanner_.expect("[");
    while (not scanner_.take("]")) {
      shape.push_back(scanner_.dim(",]"));
      if (not scanner_.take(",") and not scanner_.at("]")) scanner_.fail_expected("\",\" or \"]\" after a size");
    }
    return shape;
  }

  Type parse_type() {
    const DType dtype = parse_dtype();
    return {dtype, parse_dims()};
  }

  Role parse_role() {
    for (const Role role : kRoles)
      if (scanner_.take(to_string(role))) return role;
    scanner_.fail_expected("\"input\", \"weight\", \"state\" or \"constant\"");
  }

  void parse_input() {
    const Role role = parse_role();
    const Name name = parse_name();
    scanner_.expect(":");
    const Type type = parse_type();
    std::optional<Tensor> data;
    if (scanner_.take("=") and not scanner_.take("elided")) data = parse_data(type);
    const std::string own = scanner_.at("\"") ? scanner_.string() : name.name;
    const Val value = builder_.input(role, own, type, std::move(data));
    define(name, value);
    builder_.remember_scalar(value.id());
    if (not scanner_.take("in")) return;
    scanner_.expect("[");
    const Dim low = scanner_.dim(",");
    scanner_.expect(",");
    const Dim high = scanner_.dim(")");
    scanner_.expect(")");
    builder_.set_bounds(value.id(), low, high);
  }

  Tensor parse_data(const Type& type) {
    const Loc where = scanner_.loc();
    if (not is_constant(type.shape)) Scanner::fail(fmt::format("data of an input whose shape [{}] is no number", to_string(type.shape)), where);
    std::string bytes;
    std::int64_t count = 0;
    const auto element = [&] {
      const Loc at = scanner_.loc();
      const std::string_view text = scanner_.literal();
      const std::optional<std::string> converted = element_bytes(type.dtype, text);
      if (not converted) Scanner::fail(fmt::format("expected a number of type {}, found {}", to_string(type.dtype), quoted(text)), at);
      bytes += *converted;
      ++count;
    };
    if (type.shape.empty()) element();
    else {
      scanner_.expect("[");
      while (not scanner_.take("]")) {
        element();
        if (not scanner_.take(",") and not scanner_.at("]")) scanner_.fail_expected("\",\" or \"]\" after a number");
      }
    }
    const std::vector<std::int64_t> shape = constant_shape(type.shape);
    if (const std::int64_t expected = checked_element_count(shape); expected != count)
      Scanner::fail(fmt::format("{} needs {} numbers, found {}", to_string(type), expected, count), where);
    return Tensor::copy(type.dtype, shape, std::as_bytes(std::span(bytes)));
  }

  void parse_statement() {
    if (scanner_.at("%")) return parse_node();
    if (scanner_.take("output")) {
      const std::string name = scanner_.name("the output's name");
      return builder_.output(name, parse_value());
    }
    if (scanner_.take("alias")) return parse_alias();
    if (scanner_.take("equation")) return parse_equation();
    scanner_.fail_expected("a node (%name = ...), \"output\", \"alias\", \"equation\" or \"}\"");
  }

  void parse_alias() {
    const Loc where = scanner_.loc();
    const Val state = parse_value();
    scanner_.expect("<-");
    const Val value = parse_value();
    if (graph_.input_of(state.id()) == nullptr) Scanner::fail("an alias replaces an input of the graph", where);
    if (state.type() != value.type())
      Scanner::fail(fmt::format("an alias of {} cannot be replaced by {}", to_string(state.type()), to_string(value.type())), where);
    builder_.alias(state, value);
  }

  void parse_equation() {
    const Dim a = scanner_.dim("=");
    scanner_.expect("=");
    const Dim b = scanner_.dim("");
    for (const auto& [x, y] : graph_.equations())  // inference notes most of them again
      if ((x == a and y == b) or (x == b and y == a)) return;
    builder_.equate(a, b);
  }

  void parse_node() {
    if (graph_.node_count() >= limits::kNodes) throw Error(Code::kTooLarge, fmt::format("more than {} nodes", limits::kNodes), scanner_.loc());
    Loc where = scanner_.loc();
    std::vector<Result> results;
    do {
      Result& result = results.emplace_back();
      result.name = parse_name();
      if (scanner_.take(":")) result.type = parse_type();
    } while (scanner_.take(","));
    scanner_.expect("=");
    const Part part = part_;  // a comment behind the node belongs to what follows
    const OpDef& op = parse_op();
    const std::vector<Val> operands = parse_operands();
    Attrs attrs;
    bool bodies_follow = false;
    Loc loc;
    if (scanner_.take_on_line("{")) {
      loc = scanner_.trailing_loc();  // first: looking at what comes next skips a comment
      bodies_follow = scanner_.at("graph");
      if (not bodies_follow) attrs = parse_attributes(op), bodies_follow = scanner_.take_on_line("{");
    }
    if (loc.node.empty() and loc.layer.empty() and loc.derived.empty()) loc = scanner_.trailing_loc();
    loc.file = where.file, loc.line = where.line;
    std::vector<std::unique_ptr<Graph>> bodies;
    if (bodies_follow) bodies = parse_bodies();
    std::vector<ValueId> ids;
    for (const Val& operand : operands) ids.push_back(operand.id());
    if (const auto problem = operands_problem(op, ids)) Scanner::fail(*problem, where);
    const Builder::Scope scope(builder_, loc, part);
    const std::vector<Val> made = builder_.add(op, operands, attrs, std::move(bodies));
    check_results(op, results, made, where);
    for (std::size_t i = 0; i < made.size(); ++i) define(results[i].name, made[i]);
  }

  std::vector<std::unique_ptr<Graph>> parse_bodies() {
    if (depth_ >= limits::kBodyDepth) throw Error(Code::kTooLarge, fmt::format("bodies nested more than {} deep", limits::kBodyDepth), scanner_.loc());
    std::vector<std::unique_ptr<Graph>> bodies;
    while (not scanner_.take("}")) bodies.push_back(std::make_unique<Graph>(GraphParser(scanner_, depth_ + 1).parse()));
    follow_comments();
    return bodies;
  }

  static void check_results(const OpDef& op, const std::vector<Result>& results, const std::vector<Val>& made, const Loc& where) {
    if (results.size() != made.size()) Scanner::fail(fmt::format("{} has {} results, found {}", op.name, made.size(), results.size()), where);
    for (std::size_t i = 0; i < made.size(); ++i)
      if (results[i].type and *results[i].type != made[i].type())
        Scanner::fail(fmt::format("{} gives {}, but the text says {}", op.name, to_string(made[i].type()), to_string(*results[i].type)), where);
  }

  const OpDef& parse_op() {
    const Loc where = scanner_.loc();
    const std::string word = scanner_.name("an op");
    if (const OpDef* op = find_op(word)) return *op;
    std::vector<std::string> names;
    for (const OpDef* op : all_ops()) names.emplace_back(op->name);
    Scanner::fail(fmt::format("there is no op {}", quoted(word)), where, {did_you_mean(word, names)});
  }

  std::vector<Val> parse_operands() {
    std::vector<Val> operands;
    scanner_.expect("(");
    while (not scanner_.take(")")) {
      operands.push_back(scanner_.take("-") ? Val() : parse_value());
      if (not scanner_.take(",") and not scanner_.at(")")) scanner_.fail_expected("\",\" or \")\" after an operand");
    }
    return operands;
  }

  Attrs parse_attributes(const OpDef& op) {
    Attrs attrs;
    while (not scanner_.take("}")) {
      const Loc where = scanner_.loc();
      const std::string word = scanner_.name("an attribute");
      const AttrSpec* spec = find_attribute(op, word);
      if (spec == nullptr) fail_attribute(op, word, where);
      scanner_.expect("=");
      attrs.set({spec, parse_attribute(*spec)});
      if (not scanner_.take(",") and not scanner_.at("}")) scanner_.fail_expected("\",\" or \"}\" after an attribute");
    }
    return attrs;
  }

  [[noreturn]] static void fail_attribute(const OpDef& op, const std::string& word, Loc where) {
    std::vector<std::string> names;
    for (const AttrRef& attr : op.attrs) names.emplace_back(attr.spec->name);
    const std::string list = names.empty() ? "it has none" : "it has " + join(names, ", ");
    Scanner::fail(fmt::format("{} has no attribute {}", op.name, quoted(word)), std::move(where), {did_you_mean(word, names), list});
  }

  AttrValue parse_attribute(const AttrSpec& spec) {
    switch (spec.kind) {
      case AttrKind::kBool:
        if (scanner_.take("true")) return true;
        if (scanner_.take("false")) return false;
        scanner_.fail_expected(fmt::format("true or false for {}", spec.name));
      case AttrKind::kInt: return parse_number<std::int64_t>(spec, "an integer");
      case AttrKind::kFloat: return parse_number<double>(spec, "a number");
      case AttrKind::kString: return scanner_.string();
      case AttrKind::kDType: return parse_dtype();
      case AttrKind::kInts: return parse_ints(spec);
      case AttrKind::kShape: return parse_dims();
    }
    internal_error(__FILE__, __LINE__, "an attribute of an unknown kind");
  }

  template <typename T>
  T parse_number(const AttrSpec& spec, std::string_view what) {
    const Loc where = scanner_.loc();
    const std::string_view text = scanner_.literal();
    if (const std::optional<T> value = number<T>(text)) return *value;
    Scanner::fail(fmt::format("expected {} for {}, found {}", what, spec.name, quoted(text)), where);
  }

  Ints parse_ints(const AttrSpec& spec) {
    Ints values;
    scanner_.expect("[");
    while (not scanner_.take("]")) {
      values.push_back(parse_number<std::int64_t>(spec, "an integer"));
      if (not scanner_.take(",") and not scanner_.at("]")) scanner_.fail_expected("\",\" or \"]\" after a number");
    }
    return values;
  }

  Scanner& scanner_;
  int depth_;  ///< 1 for the outermost graph
  Graph graph_;
  Builder builder_;
  Part part_ = Part::kForward;
  std::map<std::string, ValueId> values_;
};

}  // namespace

Graph parse_graph(std::string_view text, std::string_view file) {
  Scanner scanner(text, std::string(file));
  Graph graph = GraphParser(scanner, 1).parse();
  if (not scanner.at_end()) scanner.fail_expected("nothing after the graph's end");
  verify(graph);
  return graph;
}

}  // namespace hone
