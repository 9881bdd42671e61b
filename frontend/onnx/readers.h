// Who reads what in an ONNX graph, by name.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "formats/onnx.pb.h"

namespace hone::onnx {

struct Reader {
  int node;     ///< position in the graph; -1: in a body or an attribute of a node, or an output of the graph
  int operand;  ///< which operand
};

/// The readers of each name.
std::unordered_map<std::string, std::vector<Reader>> readers_of(const GraphProto& graph);

/// Is operand `i` of the node where models keep what they learn: a weight, bias, scale or running statistic?
bool is_weight_position(const NodeProto& node, int i);

/// Operands of RNN, GRU and LSTM.
inline constexpr int kRecurrentWeight = 1, kRecurrentBias = 3, kRecurrentFirstState = 5;
bool is_recurrent(const NodeProto& node);

}  // namespace hone::onnx
