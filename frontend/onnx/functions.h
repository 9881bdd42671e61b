// The functions that a model brings along. One overrides an operator of the same domain and name.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "frontend/onnx/scope.h"

namespace hone::onnx {

class Functions {
 public:
  /// Reports functions that the model has twice.
  Functions(const ModelProto& model, const Loc& file, Diags& diags);

  /// The function that `node` calls, or nullptr.
  const FunctionProto* called_by(const NodeProto& node) const;
  /// Does a function belong to `domain`?
  bool has_domain(std::string_view domain) const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload
  std::map<Key, const FunctionProto*> by_key_;
};

/// `function` called by `node`, which stands in `scope`: its attributes as given there, else their defaults. Throws kBadGraph when operands or results are too many.
FunctionCall call_of(const FunctionProto& function, const ImportNode& node, const NodeProto& proto, const Scope& scope);

/// The version of the default domain that the function's nodes are written for; `outside` where it does not say. Throws kOpset for one that Hone does not know.
std::int64_t opset_of(const FunctionProto& function, std::int64_t outside, const Loc& loc);

/// "my.domain.Name", for people
std::string name_of(const FunctionProto& function);

}  // namespace hone::onnx
