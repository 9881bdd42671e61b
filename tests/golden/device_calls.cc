#include "tests/golden/device_calls.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "backends/compile.h"
#include "base/files.h"
#include "base/text.h"
#include "frontend/onnx/import.h"
#include "frontend/recipe_toml.h"
#include "runtime/device/cublaslt_matmul.h"
#include "runtime/device/cudnn_attention.h"
#include "runtime/device/cudnn_conv.h"
#include "runtime/device/cudnn_rnn.h"
#include "runtime/library/step_spec.h"
#include "tests/golden/recorded_run.h"
#include "tests/support/described_gpu.h"

namespace hone::test {

namespace {

struct Call {
  const LibraryRow* row;
  LibrarySpec spec;
};
using Calls = std::map<std::string, Call>;  // each once

std::string text_of(const Call& call) {
  std::string text(call.row->name);
  for (const auto& operand : call.spec.operands) text += fmt::format(" {}{}", to_string(operand->dtype), shape_text(operand->shape));
  text += fmt::format(" -> {}{}", to_string(call.spec.results[0].dtype), shape_text(call.spec.results[0].shape));
  for (const auto& [name, values] : call.spec.attributes) text += fmt::format(" {}={}", name, shape_text(values));
  return text;
}

/// For a batch of 32, and 64 for whatever else is not known.
void add_calls(const plan::Entry& entry, const std::string& batch_symbol, Calls& calls) {
  DimBindings sizes;
  const auto bind = [&](const Shape& shape) {
    for (const Dim& dim : shape)
      for (const std::string& symbol : dim.symbols()) sizes[symbol] = symbol == batch_symbol ? 32 : 64;
  };
  for (const plan::Buffer& buffer : entry.buffers) bind(buffer.shape);
  for (const plan::Step& step : entry.steps) {
    const auto add = [&](const auto& what) {
      Call call{find_library_row(what.row), library_spec(what, sizes, [&](std::uint32_t buffer) { return TensorType{entry.buffers[buffer].dtype, evaluate(entry.buffers[buffer].shape, sizes)}; })};
      calls.try_emplace(text_of(call), call);
    };
    if (const auto* region = std::get_if<plan::RegionStep>(&step.what)) {
      if (region->kind == plan::RegionStep::Kind::kCall) add(plan::library_call(*region));
      for (const plan::Entry& body : region->bodies) add_calls(body, batch_symbol, calls);
    }
    const auto* library = std::get_if<plan::LibraryStep>(&step.what);
    if (library == nullptr) continue;
    EXPECT_TRUE(library->own_kernel) << library->row << " has nothing that stands for it";
    for (const auto& [name, values] : library->attributes) bind(values);
    add(*library);
    if (library->epilogue) add(*library->epilogue);
  }
}

}  // namespace

void expect_libraries_take(const std::string& model, const std::string& precision) {
  if (not is_recorded(model)) GTEST_SKIP() << kNotRecorded;
  std::string why_no_cublaslt, why_no_cudnn;
  const cublaslt::Library* const cublaslt = cublaslt::library(&why_no_cublaslt);
  const cudnn::Library* const cudnn = cudnn::library(&why_no_cudnn);
  if (cublaslt == nullptr and cudnn == nullptr) GTEST_SKIP() << "neither cuBLASLt (" << why_no_cublaslt << ") nor cuDNN (" << why_no_cudnn << ")";
  const TempFolder folder;
  write_recorded(folder, model);
  Recipe recipe = resolve(parse_recipe(folder.read("train.toml"), "train.toml"));
  recipe.train.precision = precision;
  const onnx::Imported imported = onnx::import_model(folder / "model.onnx", {.mend = onnx::mend_options(recipe)});
  const plan::Plan plan = compile({imported.graph, imported.model, model}, recipe, {.targets = {"cuda"}, .levels = {.gpu = {}}}).plan;
  Calls calls;
  for (const plan::Entry& entry : plan.programs.front().entries) add_calls(entry, plan.batch_symbol, calls);
  std::optional<cudnn::Descriptor> device;
  if (cudnn != nullptr) device = cudnn::device_properties(*cudnn, kDescribedGpu);
  for (const auto& [text, call] : calls) {
    if (call.row->device_library == "cuBLASLt") {
      if (cublaslt != nullptr) EXPECT_NO_THROW(cublaslt::Descriptors(*cublaslt, cublaslt::product_of(call.spec))) << text;
      continue;
    }
    if (cudnn == nullptr) continue;
    try {
      if (call.row->name.starts_with("cudnn.attention")) {  // its engines are shown where a driver is (tests/cudnn_plans)
        (void)cudnn::AttentionGraph(*cudnn, cudnn::parts_of(*call.row, call.spec, device_scratch(*call.row, call.spec)).part);
        continue;
      }
      if (call.row->name.starts_with("cudnn.recurrent")) {  // all that is told of a layer without a GPU
        (void)cudnn::RnnDescriptors(*cudnn, recurrent_of(call.spec));
        continue;
      }
      const cudnn::Convolution convolution = cudnn::convolution_of(*call.row, call.spec);
      const cudnn::OperationGraph graph(*cudnn, convolution);
      (void)cudnn::choose_plans(*cudnn, graph, *device, convolution, device_scratch(call.spec), 1);
    } catch (const cudnn::Refused& refused) {
      ADD_FAILURE() << text << ": " << refused.what;
    }
  }
  EXPECT_FALSE(calls.empty()) << "none of its products is a library's";
}

}  // namespace hone::test
