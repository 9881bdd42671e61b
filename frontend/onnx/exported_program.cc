#include "frontend/onnx/exported_program.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace hone::onnx {

namespace {

constexpr std::string_view kKind = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr std::string_view kParameterKind = "PARAMETER";
constexpr std::string_view kProgramInput = "pkg.torch.onnx.original_node_name";
constexpr std::string_view kScopes = "pkg.torch.onnx.name_scopes";
constexpr std::string_view kFoldedFrom = "pkg.onnxscript.optimizer.folded_from";

bool is_constant_kind(std::string_view kind) { return kind == "BUFFER" or kind == "CONSTANT_TENSOR"; }

/// The strings of a list as Python prints it: "['a', "it's"]".
std::vector<std::string> python_strings(std::string_view list) {
  std::vector<std::string> strings;
  for (std::size_t at = list.find_first_of("'\""); at != std::string_view::npos; at = list.find_first_of("'\"", at)) {
    const std::size_t end = list.find(list[at], at + 1);
    if (end == std::string_view::npos) break;
    strings.emplace_back(list.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return strings;
}

}  // namespace

std::vector<std::string> value_names(std::string_view call) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  std::vector<std::string> names;
  for (std::size_t at = call.find('%'); at != std::string_view::npos; at = call.find('%', at)) {
    const std::size_t end = std::min(call.find_first_not_of(kLetters, ++at), call.size());
    names.emplace_back(call.substr(at, end - at));
  }
  return names;
}

ExportedProgram::ExportedProgram(const GraphProto& graph) {
  read_signature(metadata_of(graph, kSignature));
  if (names_.empty()) return;
  std::set<std::string_view> initializers;
  for (const TensorProto& tensor : graph.initializer()) initializers.insert(tensor.name());
  for (const ValueInfoProto& info : graph.value_info()) {
    if (not initializers.contains(info.name())) continue;
    Account account = account_of(info);
    found_.insert(account.parameters.begin(), account.parameters.end());
    if (account.origin != Origin::kUnknown) accounts_.emplace(info.name(), std::move(account));
  }
}

/// Lines such as "p_fc_weight: PARAMETER target='fc.weight'" and "b_pe: BUFFER target='pe' persistent=True".
void ExportedProgram::read_signature(std::string_view signature) {
  for (const std::string& line : split(signature, '\n')) {
    const std::size_t colon = line.find(": "), target = line.find(" target='"), first = target + std::string_view(" target='").size(), end = line.rfind('\'');
    if (colon == std::string::npos or target == std::string::npos or colon >= target or end <= first) continue;
    const std::string kind = line.substr(colon + 2, target - colon - 2), name = line.substr(first, end - first);
    if (is_constant_kind(kind)) {
      constants_.insert(name);
      buffers_.emplace(line.substr(0, colon), name);
    }
    if (kind != kParameterKind) continue;
    parameters_.emplace(line.substr(0, colon), name);
    names_.insert(name);
  }
}

ExportedProgram::Account ExportedProgram::account_of(const ValueInfoProto& info) const {
  const std::string kind = metadata_of(info, kKind);
  const auto program_input = parameters_.find(metadata_of(info, kProgramInput));
  if (kind == kParameterKind) return {Origin::kParameter, {program_input == parameters_.end() ? info.name() : program_input->second}};
  if (is_constant_kind(kind)) return {Origin::kConstant, {}};
  const std::string folded = metadata_of(info, kFoldedFrom);
  if (folded.empty()) return {};
  Account account{Origin::kConstant, {}, true};
  for (std::string& name : python_strings(folded)) {
    if (names_.contains(name)) account.parameters.insert(std::move(name));
    else if (may_hide_parameters(name)) account.origin = Origin::kUnknown;
  }
  if (not account.parameters.empty()) account.origin = Origin::kParameter;
  return account;
}

/// Names of a module's tensors have dots, those of a program's values have none. What has one and is no buffer was made out of parameters while optimizing, such
/// as a convolution's weight with a normalization folded into it, or the bias that this gave it.
bool ExportedProgram::may_hide_parameters(const std::string& name) const {
  return (name.find('.') != std::string::npos and not constants_.contains(name)) or name.ends_with("_bias");
}

/// Of what nothing is told, that.
const ExportedProgram::Account& ExportedProgram::account(const std::string& initializer) const {
  static const Account kUntold;
  const auto found = accounts_.find(initializer);
  return found == accounts_.end() ? kUntold : found->second;
}

Origin ExportedProgram::origin_of(const std::string& initializer) const { return account(initializer).origin; }
bool ExportedProgram::is_folded(const std::string& initializer) const { return account(initializer).folded; }
const std::set<std::string>& ExportedProgram::parameters_in(const std::string& initializer) const { return account(initializer).parameters; }

namespace {

/// An operator of PyTorch, without its overload, and its arguments by position as they are printed, up to the first tuple among them.
struct Call {
  std::string_view op;
  std::vector<std::string> arguments;
};

/// "%embedding : [num_users=1] = call_function[target=torch.ops.aten.embedding.default](args = (%p_weight, %tokens, 3), kwargs = {})"
Call call_of(std::string_view text) {
  constexpr std::string_view kOperators = "aten.", kArguments = "](args = (";
  const std::size_t op = text.find(kOperators), begin = text.find(kArguments);
  if (op == std::string_view::npos or begin == std::string_view::npos or op > begin) return {};
  Call call;
  call.op = text.substr(op + kOperators.size(), begin - op - kOperators.size());
  call.op = call.op.substr(0, call.op.find('.'));
  text.remove_prefix(begin + kArguments.size());
  for (const std::string& argument : split(text.substr(0, text.find(')')), ',')) call.arguments.push_back(argument.substr(std::min(argument.find_first_not_of(' '), argument.size())));
  return call;
}

/// Where the operator takes a bias: linear(x, weight, bias), as convolutions do, and addmm(bias, x, weight).
std::optional<std::size_t> place_of_bias(std::string_view op) {
  if (op == "linear" or op.starts_with("conv")) return 2;
  return op == "addmm" ? std::optional<std::size_t>(0) : std::nullopt;
}

}  // namespace

/// -1 stands for none.
std::optional<std::int64_t> padding_row_of(std::string_view text) {
  constexpr std::size_t kPlace = 2;  // behind the table and the index
  const Call call = call_of(text);
  if (call.op != "embedding" or call.arguments.size() <= kPlace) return std::nullopt;
  const std::string& number = call.arguments[kPlace];
  std::int64_t row = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), row);
  return error == std::errc{} and end == number.data() + number.size() and row >= 0 ? std::optional(row) : std::nullopt;
}

std::string ExportedProgram::bias_of(const NodeProto& node) const {
  const std::string text = parameters_.empty() ? "" : metadata_of(node, kProgramCall);
  const Call call = call_of(text);
  const auto place = place_of_bias(call.op);
  if (not place or *place >= call.arguments.size() or not call.arguments[*place].starts_with('%')) return "";
  const auto found = parameters_.find(call.arguments[*place].substr(1));
  return found == parameters_.end() ? "" : found->second;
}

namespace {

/// What the names in the node's call stand for, in their order.
std::vector<std::string> taken_by_call(const NodeProto& node, const std::unordered_map<std::string, std::string>& program_inputs) {
  std::vector<std::string> taken;
  if (program_inputs.empty()) return taken;
  for (const std::string& name : value_names(metadata_of(node, kProgramCall)))
    if (const auto found = program_inputs.find(name); found != program_inputs.end()) taken.push_back(found->second);
  return taken;
}

}  // namespace

std::set<std::string> ExportedProgram::parameters_of(const NodeProto& node) const {
  const std::vector<std::string> taken = taken_by_call(node, parameters_);
  return {taken.begin(), taken.end()};
}

std::vector<std::string> ExportedProgram::buffers_of(const NodeProto& node) const { return taken_by_call(node, buffers_); }

/// "['', 'layers.0', 'layers.0.self_attn', 'linear']": modules from the outermost on, then the call.
std::string ExportedProgram::module_of(const NodeProto& node) {
  const std::vector<std::string> scopes = python_strings(metadata_of(node, kScopes));
  return scopes.size() < 2 ? "" : scopes[scopes.size() - 2];
}

void ExportedProgram::add(const std::string& initializer, Origin origin, std::set<std::string> parameters) {
  found_.insert(parameters.begin(), parameters.end());
  accounts_[initializer] = {origin, std::move(parameters)};
}

}  // namespace hone::onnx
