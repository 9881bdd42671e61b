// What an importer sees of one ONNX node: operands as values of our graph, attributes by name, contents that are known while compiling.
// Every getter throws an Error that names the node when the file gives something else than asked for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx_file.h"
#include "frontend/onnx/item.h"
#include "ir/builder.h"

namespace hone::onnx {

/// What the attributes of a function are at one call, by name: a node of its body that refers to one (AttributeProto::ref_attr_name) has that value, and has no such
/// attribute where the function's is not given.
using BoundAttributes = std::map<std::string, const AttributeProto*, std::less<>>;

class ImportNode {
 public:
  /// `proto`, `folder` (of external data) and `bound` (in a function's body) must outlive the node.
  ImportNode(Builder& builder, const NodeProto& proto, std::vector<Item> operands, std::vector<bool> wanted_results, Loc loc, const std::string& folder,
             const BoundAttributes* bound = nullptr);

  Builder& builder() const { return builder_; }
  const std::string& op_type() const { return proto_.op_type(); }
  const std::string& domain() const { return proto_.domain(); }
  const Loc& loc() const { return loc_; }

  // --- Operands ---
  std::size_t count() const { return operands_.size(); }
  bool has(std::size_t i) const { return i < operands_.size() and (operands_[i].item.kind != Item::Kind::kLeftOut or operands_[i].literal); }
  /// Throws kBadGraph when the operand is left out, kType when it is no tensor.
  Val x(std::size_t i) const;
  /// Operand `i`, whatever it is. Throws kBadGraph when it is left out.
  const Item& item(std::size_t i) const;
  /// The tensors of operand `i`, which must be a sequence.
  const std::vector<Val>& sequence(std::size_t i) const;
  /// Operands `first` and on, none of them left out.
  std::vector<Val> rest(std::size_t first) const;
  /// Is operand `i` a tensor with elements that nothing is known of when compiling?
  bool is_fed(std::size_t i) const;
  /// Contents of operand `i`, called `name` in the operator's description. Those of a small integer tensor that are not known while compiling are value
  /// symbols (Builder::materialize); throws kDynamic for any other tensor.
  std::vector<Dim> contents(std::size_t i, std::string_view name) const;
  /// The same where only numbers will do.
  Ints numbers(std::size_t i, std::string_view name) const;
  /// The contents of a one-element operand.
  Dim content(std::size_t i, std::string_view name) const;

  /// What the exporter noted at the node under `key`, or "".
  std::string metadata(std::string_view key) const;

  // --- Attributes ---
  /// The attribute, whatever its type; in a function's body the one that it refers to. nullptr if there is none.
  const AttributeProto* attribute(std::string_view name) const;
  bool has_attribute(std::string_view name) const { return attribute(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t absent) const;
  bool flag(std::string_view name, bool absent) const { return integer(name, absent ? 1 : 0) != 0; }
  double real(std::string_view name, double absent) const;
  std::string text(std::string_view name, std::string_view absent) const;
  std::optional<Ints> integers(std::string_view name) const;
  std::optional<std::vector<double>> reals(std::string_view name) const;
  std::optional<Tensor> tensor(std::string_view name) const;
  /// The attribute `name` as an element type of ours. Throws kType for one that Hone does not have.
  DType dtype(std::string_view name) const;

  // --- Results ---
  std::size_t result_count() const { return wanted_.size(); }
  /// Does anything read result `i`?
  bool wants(std::size_t i) const { return i < wanted_.size() and wanted_[i]; }

  /// "Conv: MESSAGE" at this node.
  [[noreturn]] void fail(Code code, std::string_view message, std::vector<std::string> notes = {}) const;
  void require(bool condition, Code code, std::string_view message) const;
  /// `axis` counted from the end if negative; throws kBadAttribute beyond `rank`.
  std::size_t axis(std::int64_t axis, std::size_t rank) const;
  /// The same for several: sorted. Throws kBadAttribute for one that comes twice.
  Ints axes(const Ints& axes, std::size_t rank) const;

  // --- For frontend/onnx/versions.cc: a node takes its newest form ---
  void set_operand(std::size_t i, Val val);
  /// An operand that is nothing but known contents.
  void set_operand(std::size_t i, Ints contents);
  void set_integer(std::string_view name, std::int64_t value) { integers_.insert_or_assign(std::string(name), value); }

 private:
  struct Operand {
    Item item;
    std::optional<Ints> literal;
  };
  std::string symbol_name(ValueId id, std::string_view name) const;
  [[noreturn]] void fail_unknown(std::size_t i, std::string_view name) const;
  const AttributeProto* find(std::string_view name, AttributeProto::AttributeType type) const;

  Builder& builder_;
  const NodeProto& proto_;
  std::vector<Operand> operands_;
  std::vector<bool> wanted_;
  Loc loc_;
  const std::string& folder_;
  const BoundAttributes* bound_;
  std::map<std::string, std::int64_t, std::less<>> integers_;  ///< attributes that the newest form has and the file's has not
};

}  // namespace hone::onnx
