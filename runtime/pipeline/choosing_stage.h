// What stages have in common that only choose among elements and order them.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "runtime/pipeline/stage.h"

namespace hone {

/// Examples, or the numbers of rows.
template <typename Element>
std::unique_ptr<ElementStream<Element>> open_as(const Stage& stage, std::uint64_t pass) {
  if constexpr (std::is_same_v<Element, Example>) return stage.open(pass);
  else return stage.open_rows(pass);
}

/// A stage that chooses among elements and orders them, whatever they are: rows of arrays it chooses by number, and none is made that is not asked for. `Own` has a stream<Element>(pass).
template <typename Own>
class ChoosingStage : public Stage {
 public:
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override {
    if (arrays() != nullptr) return examples_of(*arrays(), open_rows(pass));
    return own().template stream<Example>(pass);
  }
  const NamedArrays* arrays() const override { return from_->arrays(); }
  std::unique_ptr<RowStream> open_rows(std::uint64_t pass) const override { return own().template stream<std::int64_t>(pass); }

 protected:
  explicit ChoosingStage(StagePointer from) : from_(std::move(from)) {}

  StagePointer from_;

 private:
  const Own& own() const { return static_cast<const Own&>(*this); }
};

}  // namespace hone
