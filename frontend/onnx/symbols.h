// Sizes of the model's inputs: the file's names for them, fresh names for those it leaves open, and what turns out to be equal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/diag.h"
#include "base/dims.h"
#include "formats/onnx.pb.h"

namespace hone::onnx {

class Symbols {
 public:
  /// `fixed`: sizes by name that the user sets. `equal`: sizes by name that the user says are another one.
  Symbols(std::map<std::string, std::int64_t> fixed, std::map<std::string, std::string> equal) : fixed_(std::move(fixed)), equal_(std::move(equal)) {}

  /// The shape that the file declares for graph input `name`; the same file name of a size is the same symbol, an extent without name gets one of its own.
  Shape declared(const std::string& name, const TensorShapeProto& shape);

  /// Takes `equations` (Graph::equations) into account: from now on declared() gives one size for those that were found equal. True if that was news;
  /// then the graph should be made again, so that no other name is left in it.
  bool learn(std::span<const std::pair<Dim, Dim>> equations);

  /// Symbols that learn() found to be numbers: the model takes nothing else there.
  const std::vector<std::pair<std::string, std::int64_t>>& determined() const { return determined_; }

  /// How many tensors the user says that input `name`, a sequence or an optional, holds.
  std::optional<std::int64_t> count_of(const std::string& name);

  /// Reports each size that the user sets, or makes another one, and the model does not have; and sizes that are one another.
  void check_asked(Diags& diags) const;

 private:
  Dim named(const std::string& name);
  /// What the user says that size `name` is; one of the names of a circle, where they go round in one.
  std::string last_name(std::string name) const;
  void check_name(const std::string& name, std::string_view what_for, Diags& diags) const;
  Dim resolved(Dim dim) const;

  std::map<std::string, std::int64_t> fixed_;
  std::map<std::string, std::string> equal_;
  std::set<std::string> in_file_;                          ///< names that were met, those of `equal_` included
  std::set<std::string> counted_;                          ///< names of inputs that count_of() was asked for
  std::map<std::string, Dim> by_file_name_;                ///< what the file calls a size, or "INPUT axis I"
  std::map<std::string, std::size_t, std::less<>> order_;  ///< symbols in the order in which they were met; those with a name in the file first
  std::map<std::string, Dim, std::less<>> replaced_;
  std::vector<std::pair<std::string, std::int64_t>> determined_;
};

}  // namespace hone::onnx
