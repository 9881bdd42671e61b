// A model as hone-compile --check sees it: what can be imported of it, and everything that is in the way.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/onnx/import.h"

namespace hone::onnx {

/// One operator of the file.
struct OperatorUse {
  std::string name;     ///< "Conv"; of another domain "com.example.Conv"
  int nodes = 0;        ///< those in bodies and functions, too
  std::string refusal;  ///< why it cannot be imported; "" if it can
};

struct Examined {
  Imported imported;                               ///< its graph lacks what the problems are about
  std::vector<OperatorUse> operators;              ///< sorted by name
  std::map<std::string, std::string> operator_of;  ///< the operator of a node of the main graph, by Loc::node
  std::vector<Diag> problems;
};

/// Throws only for what is no model at all.
Examined examine_model(const std::string& path, const ImportOptions& options = {});

}  // namespace hone::onnx
