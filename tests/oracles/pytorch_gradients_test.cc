// Outputs and gradients of random cases against PyTorch's, in double. tests/oracles/pytorch_gradients.py wrote the cases and says what is in them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/files.h"
#include "formats/onnx_file.h"
#include "frontend/onnx/import.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tests/support/gradients/gradient_check.h"

namespace hone::test {
namespace {

constexpr double kTolerance = 1e-6;  // relative to the largest element, and to 1; the files hold floats of 24 bits

/// The models of a file, each behind its length.
std::vector<onnx::ModelProto> read_cases(const std::string& family) {
  const MappedFile file(std::string(HONE_SOURCE_DIR) + "/tests/oracles/pytorch/" + family + ".cases");
  std::vector<onnx::ModelProto> models;
  for (std::size_t at = 0; at < file.bytes().size();) {
    std::uint32_t length = 0;
    std::memcpy(&length, file.bytes().data() + at, sizeof length);
    at += sizeof length;
    HONE_CHECK(length <= file.bytes().size() - at and models.emplace_back().ParseFromArray(file.bytes().data() + at, static_cast<int>(length)),
               family + " is damaged");
    at += length;
  }
  return models;
}

/// A model without what it is compared with, whose x and c are inputs; and all its tensors by name.
struct OracleCase {
  onnx::ModelProto model;
  std::map<std::string, Tensor, std::less<>> tensors;

  explicit OracleCase(onnx::ModelProto proto) : model(std::move(proto)) {
    onnx::GraphProto& graph = *model.mutable_graph();
    google::protobuf::RepeatedPtrField<onnx::TensorProto> given;
    for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
      tensors.emplace(tensor.name(), tensor_of(tensor, ".", {}));
      if (tensor.name().starts_with("c")) given.Add(std::move(tensor));
      else if (tensor.name().starts_with("x")) add_input(graph, tensor);
    }
    graph.mutable_initializer()->Swap(&given);
  }

  static void add_input(onnx::GraphProto& graph, const onnx::TensorProto& tensor) {
    onnx::ValueInfoProto& input = *graph.add_input();
    input.set_name(tensor.name());
    input.mutable_type()->mutable_tensor_type()->set_elem_type(tensor.data_type());
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (const std::int64_t extent : tensor.dims()) shape.add_dim()->set_dim_value(extent);
  }
};

void expect_same(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(found.shape(), expected.shape()) << what;
  double largest = 1;
  for (std::int64_t i = 0; i < expected.element_count(); ++i) largest = std::max(largest, std::fabs(expected.at(i)));
  for (std::int64_t i = 0; i < expected.element_count(); ++i) ASSERT_NEAR(found.at(i), expected.at(i), kTolerance * largest) << what << "[" << i << "]";
}

void expect_outputs_and_gradients(const OracleCase& one) {
  Graph graph = onnx::import_model(one.model, "case.onnx", ".").graph;
  verify(graph);
  Feeds feeds;
  for (const Input& input : graph.inputs())
    if (input.role == Role::kInput) feeds.emplace(input.name, one.tensors.at(input.name));
  Graph forward = graph.clone();
  (void)expand(forward);
  const GraphResults results = interpret(forward, feeds, Precision::kDouble);
  std::size_t outputs = 0;
  for (const NamedTensor& output : results.outputs) outputs += output.name.starts_with("y");
  for (std::size_t i = 0; i < outputs; ++i) expect_same(results["y" + std::to_string(i)], one.tensors.at("y" + std::to_string(i)), "y" + std::to_string(i));
  project(graph, outputs, Projection::kLinear, feeds, results.bindings);
  for (std::size_t i = 0; i < outputs; ++i) feeds.at("w" + std::to_string(i)) = one.tensors.at("w" + std::to_string(i));
  add_gradients(graph);
  const GraphResults gradients = interpret(graph, feeds, Precision::kDouble);
  for (const std::string& name : variables_of(graph)) {
    const Tensor& expected = one.tensors.at("g:" + name);
    const bool reached = graph.find_output("g:" + name) != nullptr;
    expect_same(reached ? gradients["g:" + name] : Tensor::of<float>(expected.shape(), std::vector<float>(static_cast<std::size_t>(expected.element_count()))),
                expected, "g:" + name);
  }
}

class PytorchGradients : public testing::TestWithParam<std::string> {};

TEST_P(PytorchGradients, Agree) {
  int agreed = 0;
  for (onnx::ModelProto& model : read_cases(GetParam())) {
    const OracleCase one(std::move(model));
    SCOPED_TRACE(one.model.graph().name());
    const auto* result = testing::UnitTest::GetInstance()->current_test_info()->result();
    const int before = result->total_part_count();
    EXPECT_NO_THROW(expect_outputs_and_gradients(one));
    agreed += result->total_part_count() == before;
  }
  fmt::print("{}: {} cases agree with PyTorch\n", GetParam(), agreed);
}

INSTANTIATE_TEST_SUITE_P(, PytorchGradients, testing::Values("conv", "pool", "normalization", "resize", "index", "recurrent", "einsum", "attention"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
