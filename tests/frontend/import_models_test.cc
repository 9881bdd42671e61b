// Models as PyTorch and Keras export them: they import, with the type that the framework gave and a symbolic batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/npy.h"
#include "formats/npz.h"
#include "frontend/onnx/import.h"
#include "ir/kernel/interpret.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tests/support/backend_cases/backend_case.h"

namespace hone {
namespace {

std::string model_folder(const std::string& name) { return std::string(HONE_SHARED_DIR) + "/models/" + name; }

struct ExportedModel {
  std::string name, input, output;
  std::string output_type;  ///< with N for the batch
  std::size_t weights;
};
void PrintTo(const ExportedModel& model, std::ostream* out) { *out << model.name; }

class ImportsModel : public testing::TestWithParam<ExportedModel> {
 protected:
  void SetUp() override {
    if (not std::filesystem::exists(model_folder(GetParam().name))) GTEST_SKIP() << "the exported models are not beside the repository";
  }
};

TEST_P(ImportsModel, WithOutputTypeAndSymbolicBatch) {
  const onnx::Imported imported = onnx::import_model(model_folder(GetParam().name) + "/model.onnx");
  const Graph& graph = imported.graph;
  verify(graph);
  for (const Diag& warning : imported.warnings) EXPECT_THAT(warning.message, testing::HasSubstr("batch normalization is folded")) << to_string(warning);
  const Input* input = graph.find_input(GetParam().input);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->role, Role::kInput);
  const Dim batch = graph.type(input->value).shape.at(0);
  ASSERT_TRUE(batch.is_symbol());
  const Output* output = graph.find_output(GetParam().output);
  ASSERT_NE(output, nullptr);
  Type type = graph.type(output->value);
  for (Dim& dim : type.shape) dim = dim.substitute({{batch.text(), Dim::symbol("N")}});
  EXPECT_EQ(to_string(type), GetParam().output_type);
  EXPECT_TRUE(graph.equations().empty()) << graph.equations()[0].first.text() << " = " << graph.equations()[0].second.text();
  std::size_t weights = 0;
  for (const Input& one : graph.inputs()) weights += one.role == Role::kWeight;
  EXPECT_EQ(weights, GetParam().weights);
  for (const Node& node : graph.nodes()) EXPECT_FALSE(node.loc.node.empty());
}

/// The first step's batch of `key`: arrays have the axes [step, batch, ...].
Tensor first_batch(const std::string& name, const std::string& key) {
  const Tensor all = read_npz(model_folder(name) + "/train.npz", key);
  const std::vector<std::int64_t> shape(all.shape().begin() + 1, all.shape().end());
  const std::size_t bytes = static_cast<std::size_t>(checked_element_count(shape)) * size_of(all.dtype());
  return Tensor::copy(all.dtype(), shape, all.bytes().first(bytes));
}

TEST_P(ImportsModel, GivesWhatTheFrameworkGave) {
  if (not std::filesystem::exists(model_folder(GetParam().name) + "/train.npz")) GTEST_SKIP() << "no outputs were recorded for this model";
  Graph graph = onnx::import_model(model_folder(GetParam().name) + "/model.onnx").graph;
  if (expand(graph) == Changed::kYes) verify(graph);
  const Tensor actual = interpret(graph, {{GetParam().input, first_batch(GetParam().name, GetParam().input)}})[GetParam().output];
  EXPECT_EQ(test::difference(actual, read_npy(model_folder(GetParam().name) + "/eval_before.npy"), 1e-4, 1e-5), "");
}

const ExportedModel kModels[] = {
    {"keras_fashion_mlp", "image", "Identity:0", "f32[N,10]", 4},
    {"keras_mnist_cnn", "image", "Identity:0", "f32[N,10]", 6},
    {"keras_reuters_cnn", "ids", "Identity:0", "f32[N,8]", 7},
    {"keras_reuters_cnn_full", "ids", "Identity:0", "f32[N,46]", 7},
    {"torch_mlp", "x", "logits", "f32[N,10]", 6},
    {"torch_lenet", "image", "logits", "f32[N,10]", 10},
    {"torch_resnet_tiny", "input", "logits", "f32[N,10]", 47},
    {"torch_resnet_folded", "input", "logits", "f32[N,10]", 20},
    {"torch_autoencoder", "image", "reconstruction", "f32[N,1,28,28]", 12},
    {"torch_mobilenet_tiny", "image", "logits", "f32[N,10]", 66},
    {"torch_unet_tiny", "image", "logits", "f32[N,1,32,32]", 26},
};
INSTANTIATE_TEST_SUITE_P(Exported, ImportsModel, testing::ValuesIn(kModels), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
