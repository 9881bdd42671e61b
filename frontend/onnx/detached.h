// Values that a module detached before it used them: torch.export leaves no node for that, but the calls that took the detached value name it so.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "formats/onnx.pb.h"

namespace hone::onnx {

class DetachedOperands {
 public:
  /// Of the main graph. Metadata are text that a file's maker chose: what is not understood says nothing.
  explicit DetachedOperands(const GraphProto& graph);

  /// Did the call that became the node detach this operand first? Then no gradient goes there. False wherever the record leaves a doubt.
  bool contains(const NodeProto& node, int operand) const;

 private:
  bool is_of_another_call(const std::string& value, const std::string& call) const;

  std::unordered_map<std::string, std::string> call_that_made_;  ///< by value; empty where nothing is detached
  std::unordered_set<std::string> program_inputs_;               ///< as calls name them
};

}  // namespace hone::onnx
