// Scalar expressions as ONNX nodes over whole tensors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/onnx/exporter.h"
#include "ir/kernel/expr.h"

namespace hone::onnx {

/// An expression over points of a space, as a tensor that broadcasts to it: an axis along which it does not vary has extent 1, or is not there if it is a leading one.
struct Spread {
  std::string name;
  std::size_t rank = 0;
  std::uint64_t varies = 0;  ///< a bit for each axis of the space
};

/// What an index, a load or a temporary is. For a load `operands` are its indices, and its guard if it has one.
using LeafFn = std::function<Spread(const Expr& expr, const std::vector<Spread>& operands)>;

class ExpressionWriter {
 public:
  /// Everything stays alive. `hint`: what new values are called after; `from`: the node that they belong to.
  ExpressionWriter(Exporter& exporter, const ExprPool& pool, std::string hint, const Node& from, LeafFn leaf)
      : exporter_(exporter), pool_(pool), hint_(std::move(hint)), from_(from), leaf_(std::move(leaf)), made_(pool.size()) {}

  /// The tensor of an expression; what several have in common is written once.
  Spread write(ExprId id);

  // What expressions are made of, for who goes on from them.
  std::string of(std::string_view type, const std::vector<std::string>& inputs) { return exporter_.value(type, inputs, hint_, from_); }
  std::string number(DType dtype, double value);
  std::string integer(DType dtype, std::int64_t value);
  std::string cast(const std::string& value, DType to) { return exporter_.cast(value, to, hint_, from_); }
  /// condition ? a : b, which are of `dtype`
  std::string select(const std::string& condition, const std::string& a, const std::string& b, DType dtype);

 private:
  Spread write_one(const Expr& expr);
  std::string operation(const Expr& expr, const std::vector<std::string>& x, DType type);
  std::string comparison(std::string_view name, std::vector<std::string> x, DType type);
  std::string division(ScalarOp op, const std::vector<std::string>& x, DType type);
  std::string shift(ScalarOp op, const std::vector<std::string>& x, DType type);
  std::string rounded(const std::string& x, DType type, std::uint32_t rounding);

  Exporter& exporter_;
  const ExprPool& pool_;
  const std::string hint_;
  const Node& from_;
  LeafFn leaf_;
  std::vector<Spread> made_;  ///< by expression; without a name: not yet
};

}  // namespace hone::onnx
