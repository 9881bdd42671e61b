// What a name stands for while importing: a tensor, a sequence of tensors, or an optional one of either. Sequences and optionals exist only here: a graph of ours
// holds nothing but tensors, so how many there are must be known when compiling.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"

namespace hone::onnx {

struct Item {
  enum class Kind : std::uint8_t {
    kFailed,    ///< could not be made, for a reason that has been reported
    kLeftOut,   ///< an optional operand or input that is not given
    kTensor,
    kSequence,
    kAbsent,    ///< an optional that holds nothing
  };

  Item() = default;
  Item(Val val) : kind(val.valid() ? Kind::kTensor : Kind::kFailed), tensor(val) {}  // NOLINT: a tensor is an item
  static Item left_out() { return of(Kind::kLeftOut); }
  static Item absent() { return of(Kind::kAbsent); }
  static Item sequence(std::vector<Val> elements) {
    Item item = of(Kind::kSequence);
    item.elements = std::move(elements);
    return item;
  }

  bool failed() const { return kind == Kind::kFailed; }
  bool is_tensor() const { return kind == Kind::kTensor; }
  /// Is there something to work with: a tensor, or a sequence of whatever length?
  bool is_present() const { return kind == Kind::kTensor or kind == Kind::kSequence; }

  Kind kind = Kind::kFailed;
  Val tensor;                 ///< of kTensor
  std::vector<Val> elements;  ///< of kSequence

 private:
  static Item of(Kind kind) {
    Item item;
    item.kind = kind;
    return item;
  }
};

/// "f32[N,784]", "a sequence of 3 tensors", "an optional that holds nothing"
std::string to_string(const Item& item);

}  // namespace hone::onnx
