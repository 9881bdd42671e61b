// Operators that a model needs and Hone does not have: each reported once, with all the nodes that need it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx/functions.h"

namespace hone::onnx {

class UnknownOperators {
 public:
  explicit UnknownOperators(const Functions& functions) : functions_(functions) {}

  /// A node counts once, however often its function is called.
  void add(const NodeProto& node, Loc loc);
  void report(Diags& diags) const;

 private:
  using Name = std::pair<std::string, std::string>;  // domain, operator
  std::vector<std::string> notes(const Name& name, const std::vector<Loc>& locs) const;

  const Functions& functions_;
  std::map<Name, std::vector<Loc>> nodes_;
  std::set<const NodeProto*> seen_;
};

}  // namespace hone::onnx
