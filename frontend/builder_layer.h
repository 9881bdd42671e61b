// A layer under construction: shared by the files that define the layers of frontend/builder.h.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "frontend/builder.h"

namespace hone::nn {

/// One layer being built: its name is where its nodes come from.
struct Layer {
  Layer(Value x, const std::string& kind)
      : model(x.model()), name(model.layer_name(kind)), scope(model.builder(), Loc{.node = name}, Part::kForward) {}
  Model& model;
  std::string name;
  Builder::Scope scope;

  Val weight(const std::string& part, std::vector<std::int64_t> shape, const Initializer& initializer) {
    return model.weight(name + "/" + part, std::move(shape), initializer).val();
  }
  Value done(Val val) const { return {model, val}; }
  [[noreturn]] void fail(const std::string& message, const std::string& note = "its input is what the layers before it give: look at their shapes") const {
    throw Error(Code::kShape, fmt::format("{}: {}", name, message), Loc{.node = name}, {note});
  }
  /// `number`, called `what`, is an option of the layer.
  void at_least(std::int64_t least, std::int64_t number, const char* what) const;
  void between(double least, double most, double number, const char* what) const;
  /// Another operand, which must be of the same model. Throws kBadGraph.
  Val operand(const Value& other) const;
  /// An axis of `x` as the graph counts it: `axis` counts from 1, behind the samples, or from the end.
  std::int64_t axis_of(const Value& x, std::int64_t axis) const;
  /// How many spatial axes x[N,C,...] has, one at least.
  std::size_t spatial_axes(const Value& x) const;
  /// The extent of an axis of `x`, which must be a number, as a weight depends on it.
  std::int64_t extent(const Value& x, std::size_t axis) const;
};

}  // namespace hone::nn
