// Well-known networks with constant weights, from ONNX's backend tests, compiled for the CPU and run by a session: their plumbing, and that they import.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "base/files.h"
#include "formats/onnx_file.h"
#include "tests/backend_suite/compiled_suite.h"

namespace hone::test {
namespace {

const std::string kFolder = std::string(HONE_SHARED_DIR) + "/onnx-backend-tests/light/";

/// 0/n, 1/n, ... (n-1)/n: what the networks' outputs were recorded for.
Tensor ramp(const std::vector<std::int64_t>& shape) {
  std::vector<double> values(static_cast<std::size_t>(checked_element_count(shape)));
  std::iota(values.begin(), values.end(), 0.0);
  for (double& value : values) value /= static_cast<double>(values.size());
  return Tensor::of<double>(shape, std::span<const double>(values)).cast(DType::kF32);
}

Tensor recorded(const std::string& path) {
  const MappedFile file(path);
  onnx::TensorProto proto;
  if (not proto.ParseFromArray(file.bytes().data(), static_cast<int>(file.bytes().size()))) throw Error(Code::kNotOnnx, path + " is no tensor");
  return tensor_of(proto, ".", Loc{.file = path});
}

class LightNetworks : public testing::TestWithParam<const char*> {};

TEST_P(LightNetworks, GivesTheRecordedOutput) {
  const std::string name = std::string("light_") + GetParam(), path = kFolder + name + ".onnx";
  if (not std::filesystem::exists(path)) GTEST_SKIP() << "ONNX's light networks are not beside the repository";
  const onnx::Imported model = onnx::import_model(path);
  Feeds feeds;
  for (const Input& input : model.graph.inputs())
    if (input.role == Role::kInput) feeds.emplace(input.name, ramp(constant_shape(model.graph.type(input.value).shape)));
  const std::vector<Tensor> outputs = run_compiled(model, feeds);
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_EQ(difference(outputs[0], recorded(kFolder + name + "_output_0.pb")), "");
}

INSTANTIATE_TEST_SUITE_P(, LightNetworks,
                         testing::Values("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hone::test
