#include "frontend/onnx/detached.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "frontend/onnx/exported_program.h"

namespace hone::onnx {

namespace {

bool is_detached(std::string_view name) { return name.starts_with("detach"); }

/// "%div : [num_users=1] = call_function[...](args = (%detach, %clamp_min), kwargs = {})": its own name, then those of its arguments.
std::vector<std::string> names_in_call(const NodeProto& node) { return value_names(metadata_of(node, kProgramCall)); }

}  // namespace

DetachedOperands::DetachedOperands(const GraphProto& graph) {
  const auto detaches = [](const NodeProto& node) { return metadata_of(node, kProgramCall).find("%detach") != std::string::npos; };
  if (std::none_of(graph.node().begin(), graph.node().end(), detaches)) return;
  for (const NodeProto& node : graph.node())
    if (const std::vector<std::string> names = names_in_call(node); not names.empty())
      for (const std::string& output : node.output()) call_that_made_.emplace(output, names[0]);
  for (const std::string& line : split(metadata_of(graph, kSignature), '\n')) program_inputs_.insert(line.substr(0, line.find(':')));
}

bool DetachedOperands::is_of_another_call(const std::string& value, const std::string& call) const {
  const auto made = call_that_made_.find(value);
  return made != call_that_made_.end() and made->second != call;
}

bool DetachedOperands::contains(const NodeProto& node, int operand) const {
  if (call_that_made_.empty()) return false;
  std::vector<std::string> taken = names_in_call(node);
  if (taken.empty()) return false;
  const std::string call = taken.front();
  const std::string& value = node.input(operand);
  taken.erase(taken.begin());
  std::erase_if(taken, [&](const std::string& name) { return program_inputs_.contains(name); });
  if (not is_of_another_call(value, call) or std::none_of(taken.begin(), taken.end(), is_detached)) return false;
  std::vector<int> places;  // of operands that other calls made
  for (int i = 0; i < node.input_size(); ++i)
    if (is_of_another_call(node.input(i), call)) places.push_back(i);
  if (places.size() == taken.size()) return is_detached(taken[static_cast<std::size_t>(std::find(places.begin(), places.end(), operand) - places.begin())]);
  // The call became several nodes, of which this one takes a part: what goes by none of the names is the detached one, unless others lost their names, too.
  const auto is_known = [&](const std::string& name) { return is_detached(name) or call_that_made_.contains(name); };
  return std::find(taken.begin(), taken.end(), value) == taken.end() and std::all_of(taken.begin(), taken.end(), is_known);
}

}  // namespace hone::onnx
