#include "formats/onnx_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"

namespace hone {

namespace {

enum class Message : std::uint8_t {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparse,
  kValueInfo,
  kType,
  kTypeOfTensor,
  kTypeOfSequence,
  kTypeOfMap,
  kShape,
  kFunction,
  kTraining,
  kAnnotation,
  kLeaf,  // no messages in it that are worth a look
};

struct WireField {
  Message message;
  std::uint64_t number;
  Message content;
  std::string_view name;
};

/// The fields that hold messages: what formats/onnx.proto says, as far as the walk needs it. A test compares the two.
constexpr std::array kFields = {
    WireField{Message::kModel, 7, Message::kGraph, "graph"},
    WireField{Message::kModel, 8, Message::kLeaf, "opset_import"},
    WireField{Message::kModel, 14, Message::kLeaf, "metadata_props"},
    WireField{Message::kModel, 20, Message::kTraining, "training_info"},
    WireField{Message::kModel, 25, Message::kFunction, "functions"},
    WireField{Message::kGraph, 1, Message::kNode, "node"},
    WireField{Message::kGraph, 5, Message::kTensor, "initializer"},
    WireField{Message::kGraph, 11, Message::kValueInfo, "input"},
    WireField{Message::kGraph, 12, Message::kValueInfo, "output"},
    WireField{Message::kGraph, 13, Message::kValueInfo, "value_info"},
    WireField{Message::kGraph, 14, Message::kAnnotation, "quantization_annotation"},
    WireField{Message::kGraph, 15, Message::kSparse, "sparse_initializer"},
    WireField{Message::kGraph, 16, Message::kLeaf, "metadata_props"},
    WireField{Message::kNode, 5, Message::kAttribute, "attribute"},
    WireField{Message::kNode, 9, Message::kLeaf, "metadata_props"},
    WireField{Message::kAttribute, 5, Message::kTensor, "t"},
    WireField{Message::kAttribute, 6, Message::kGraph, "g"},
    WireField{Message::kAttribute, 10, Message::kTensor, "tensors"},
    WireField{Message::kAttribute, 11, Message::kGraph, "graphs"},
    WireField{Message::kAttribute, 14, Message::kType, "tp"},
    WireField{Message::kAttribute, 15, Message::kType, "type_protos"},
    WireField{Message::kAttribute, 22, Message::kSparse, "sparse_tensor"},
    WireField{Message::kAttribute, 23, Message::kSparse, "sparse_tensors"},
    WireField{Message::kTensor, 13, Message::kLeaf, "external_data"},
    WireField{Message::kTensor, 16, Message::kLeaf, "metadata_props"},
    WireField{Message::kSparse, 1, Message::kTensor, "values"},
    WireField{Message::kSparse, 2, Message::kTensor, "indices"},
    WireField{Message::kValueInfo, 2, Message::kType, "type"},
    WireField{Message::kValueInfo, 4, Message::kLeaf, "metadata_props"},
    WireField{Message::kType, 1, Message::kTypeOfTensor, "tensor_type"},
    WireField{Message::kType, 4, Message::kTypeOfSequence, "sequence_type"},
    WireField{Message::kType, 5, Message::kTypeOfMap, "map_type"},
    WireField{Message::kType, 8, Message::kTypeOfTensor, "sparse_tensor_type"},
    WireField{Message::kType, 9, Message::kTypeOfSequence, "optional_type"},
    WireField{Message::kTypeOfTensor, 2, Message::kShape, "shape"},
    WireField{Message::kTypeOfSequence, 1, Message::kType, "elem_type"},
    WireField{Message::kTypeOfMap, 2, Message::kType, "value_type"},
    WireField{Message::kShape, 1, Message::kLeaf, "dim"},
    WireField{Message::kFunction, 7, Message::kNode, "node"},
    WireField{Message::kFunction, 9, Message::kLeaf, "opset_import"},
    WireField{Message::kFunction, 11, Message::kAttribute, "attribute_proto"},
    WireField{Message::kFunction, 12, Message::kValueInfo, "value_info"},
    WireField{Message::kFunction, 14, Message::kLeaf, "metadata_props"},
    WireField{Message::kTraining, 1, Message::kGraph, "initialization"},
    WireField{Message::kTraining, 2, Message::kGraph, "algorithm"},
    WireField{Message::kTraining, 3, Message::kLeaf, "initialization_binding"},
    WireField{Message::kTraining, 4, Message::kLeaf, "update_binding"},
    WireField{Message::kAnnotation, 2, Message::kLeaf, "quant_parameter_tensor_names"},
};

const WireField* find_field(Message message, std::uint64_t number) {
  const auto found = std::find_if(kFields.begin(), kFields.end(), [&](const WireField& field) { return field.message == message and field.number == number; });
  return found == kFields.end() ? nullptr : &*found;
}

class Walk {
 public:
  Walk(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {
    open_.push_back({Message::kModel, bytes.size(), "the model"});
  }

  std::optional<std::string> run() {
    while (not open_.empty() and not damage_) {
      if (at_ < open_.back().end) field();
      else if (missing_ > 0 and at_ == bytes_.size()) ended(0);
      else open_.pop_back();
    }
    return damage_;
  }

 private:
  struct Open {
    Message message;
    std::size_t end;
    std::string_view name;
  };

  void damaged(std::string text) { damage_ = std::move(text); }

  /// The message the walk is in, "graph.node.attribute".
  std::string place() const {
    std::string text;
    for (std::size_t i = 1; i < open_.size(); ++i) text += (i == 1 ? "" : ".") + std::string(open_[i].name);
    return text.empty() ? "the model" : text;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ == open_.back().end) return ended(1), 0;
      const auto byte = std::to_integer<std::uint64_t>(bytes_[at_++]);
      if (shift < 64) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    damaged(fmt::format("there is no number where one should be, at byte {} in {}", at_, place()));
    return 0;
  }

  void skip(std::uint64_t count) {
    if (count > open_.back().end - at_) ended(count);
    else at_ += count;
  }

  /// `count` bytes should follow, but the message ends before.
  void ended(std::uint64_t count) {
    missing_ = std::max(missing_, count - std::min<std::uint64_t>(count, bytes_.size() - at_));
    if (missing_ > 0) damaged(fmt::format("it ends inside {}, at least {} bytes too early", place(), missing_));
    else damaged(fmt::format("a length does not fit, at byte {} in {}", at_, place()));
  }

  void too_large(std::string_view what, std::uint64_t limit) const {
    throw Error(Code::kTooLarge, fmt::format("{}: more than {} {}", printable(name_, 1000), limit, what), {},
                {"no model looks like that; the file is damaged or made up"});
  }

  void field() {
    const std::uint64_t tag = varint();
    if (damage_) return;
    const std::uint64_t number = tag >> 3;
    if (number == 0 or number >= (1 << 29)) return damaged(fmt::format("there is no field {}, at byte {} in {}", number, at_, place()));
    switch (tag & 7) {
      case 0: varint(); return;
      case 1: return skip(8);
      case 2: return content(number);
      case 5: return skip(4);
      default: return damaged(fmt::format("there is no field of kind {}, at byte {} in {}", tag & 7, at_, place()));
    }
  }

  void content(std::uint64_t number) {
    const std::uint64_t length = varint();
    if (damage_) return;
    if (++parts_ > limits::kProtobufParts) too_large("strings and messages", limits::kProtobufParts);
    const WireField* const field = find_field(open_.back().message, number);
    if (field != nullptr) {
      if (field->content == Message::kNode and ++nodes_ > limits::kNodes) too_large("nodes", limits::kNodes);
      if (open_.size() > static_cast<std::size_t>(limits::kProtobufDepth)) too_large("levels of graphs and types in each other", limits::kProtobufDepth);
    }
    const std::size_t present = open_.back().end - at_;
    const bool is_leaf = field == nullptr or field->content == Message::kLeaf;
    if (length > present and (is_leaf or open_.back().end < bytes_.size())) return ended(length);
    if (length > present) {  // the file was cut off: look on for where
      missing_ = std::max(missing_, length - present);
      open_.push_back({field->content, bytes_.size(), field->name});
    } else if (is_leaf) {
      at_ += length;
    } else {
      open_.push_back({field->content, at_ + static_cast<std::size_t>(length), field->name});
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  std::vector<Open> open_;
  std::optional<std::string> damage_;
  std::uint64_t missing_ = 0;  // bytes, at least, that a length in the file promises beyond its end
  std::size_t at_ = 0;
  std::size_t parts_ = 0;
  std::size_t nodes_ = 0;
};

}  // namespace

std::optional<std::string> find_wire_damage(std::span<const std::byte> bytes, const std::string& name) { return Walk(bytes, name).run(); }

}  // namespace hone
