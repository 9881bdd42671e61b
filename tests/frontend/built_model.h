// What tests of the C++ builder's layers share: outputs of models, and what they are held against.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "frontend/builder.h"
#include "frontend/onnx/export.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tests/frontend/test_model.h"

namespace hone::test {

using Numbers = std::vector<double>;

inline Tensor output_of(const Graph& model, const Feeds& feeds) {
  Graph graph = model.clone();
  (void)expand(graph);
  verify(graph);
  return interpret(graph, feeds)["y"];
}

/// The layer's output for "x"; of the model itself and of the ONNX file that it becomes.
inline Tensor output_of(nn::Model& model, const Tensor& x) {
  const Tensor direct = output_of(model.graph(), {{"x", x}});
  const onnx::Imported imported = onnx::import_model(onnx::export_model(model.graph()), "model.onnx", ".", {});
  const Tensor read_back = output_of(imported.graph, {{"x", x}});
  EXPECT_EQ(read_back.shape(), direct.shape());
  EXPECT_THAT(values_of(read_back), testing::Pointwise(testing::DoubleNear(1e-6), values_of(direct)));
  return direct;
}

inline Numbers weight_values(const nn::Model& model, const std::string& name) {
  const Input* input = model.graph().find_input(name);
  if (input == nullptr or not input->data) throw std::runtime_error("no weight " + name);
  return values_of(*input->data);
}

inline void expect_near(const Tensor& found, const Numbers& expected) { EXPECT_THAT(values_of(found), testing::Pointwise(testing::DoubleNear(2e-6), expected)); }

/// a[rows,inner] * b[inner,columns]
inline Numbers product(const Numbers& a, const Numbers& b, std::size_t inner) {
  const std::size_t rows = a.size() / inner, columns = b.size() / inner;
  Numbers y(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < columns; ++j) y[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  return y;
}

}  // namespace hone::test
