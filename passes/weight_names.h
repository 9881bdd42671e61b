// What a recipe's patterns may call a weight.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace hone {

/// A name of an exporter's own making says nothing of where the weight is ("onnx::MatMul_466", "val_7", "const_fold_opt__95"), so a pattern such as "encoder.*"
/// would pass over it. The layers that read it tell: it is also called "encoder.fc.weight" and "encoder/fc/weight", or bias where it is added.
class WeightNames {
 public:
  /// Of a forward graph.
  explicit WeightNames(const Graph& graph);
  /// Besides its own; none for a name that is a path.
  const std::vector<std::string>& also_called(const std::string& weight) const;

 private:
  std::unordered_map<std::string, std::vector<std::string>> names_;
};

/// Does the pattern match the weight's name, or one that it is also called?
bool matches_weight(const std::string& pattern, const std::string& name, std::span<const std::string> also_called);
bool matches_weight(std::span<const std::string> patterns, const std::string& name, std::span<const std::string> also_called);

}  // namespace hone
