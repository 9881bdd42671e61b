// A GPT of twelve layers in a third of its activations' memory: the same bits, for some more arithmetic, in what was promised.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/npy.h"
#include "frontend/builder.h"
#include "frontend/onnx/export.h"
#include "runtime/library/arena.h"
#include "runtime/plan/plan.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"
#include "tests/tools/limited_plan.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kLayers = 12, kHeads = 4, kWidth = 64, kContext = 64, kWords = 96, kSamples = 8, kGptBatch = 4;

/// As GPT-2 is made, but narrower: layer norms before attention and before a network of four times the width, and the embedding's table as its head.
void write_gpt(const TempFolder& folder) {
  nn::Model model("gpt");
  const nn::Initializer normal = nn::Initializer::normal(0.02);
  const nn::Value words = model.weight("wte", {kWords, kWidth}, normal), positions = model.weight("wpe", {kContext, kWidth}, normal);
  nn::Value x = nn::embedding(model.input("x", {kContext}, DType::kI32), words) + positions;
  for (std::int64_t i = 0; i < kLayers; ++i) {
    x = x + nn::self_attention(nn::layer_norm(x), kHeads, {.is_causal = true, .kernel_initializer = normal});
    x = x + nn::dense(nn::gelu(nn::dense(nn::layer_norm(x), 4 * kWidth, {.kernel_initializer = normal})), kWidth, {.kernel_initializer = normal});
  }
  model.output("y", nn::matmul(nn::layer_norm(x), words, true));
  onnx::save(model.graph(), folder / "gpt.onnx");
  folder.write("train.toml", fmt::format("[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"adamw\"\nlearning_rate = 1e-3\n[data]\nbatch_size = {}\n[train]\nepochs = 3\n", kGptBatch));
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> next;
  for (std::int64_t i = 0; i < kSamples * kContext; ++i) {
    ids.push_back(static_cast<std::int32_t>((i * i + 3 * i) % kWords));
    next.push_back((i * i + 5 * i + 4) % kWords);
  }
  write_npy(folder / "x.npy", Tensor::of<std::int32_t>({kSamples, kContext}, std::span<const std::int32_t>(ids)));
  write_npy(folder / "y.npy", Tensor::of<std::int64_t>({kSamples, kContext}, std::span<const std::int64_t>(next)));
}

TEST(MemoryLimit, ADeepGptTrainsToTheSameBitsInAThirdOfItsActivations) {
  const TempFolder folder;
  write_gpt(folder);
  const auto compile = [&](const std::string& plan, const std::string& flags) { return run_well(folder.path(), fmt::format("hone-compile gpt.onnx -r train.toml -o {}.hone {}", plan, flags)); };
  compile("whole", "");
  const std::int64_t persistent = persistent_bytes(plan::load(folder / "whole.hone").programs[0].persistents), whole = measured_arena_of_step(folder / "whole.hone", kGptBatch);
  const std::int64_t room = whole * 35 / 100;
  const ToolRun compiled = compile("less", fmt::format("--memory-limit {}", persistent + room));
  const std::int64_t less = measured_arena_of_step(folder / "less.hone", kGptBatch);
  EXPECT_LE(less, room);
  EXPECT_THAT(compiled.err, HasSubstr(fmt::format("({} bytes) instead of", persistent + less))) << "the peak that was predicted";
  const std::string step = compiled.err.substr(compiled.err.find("train_step "));
  EXPECT_LE(number_behind(step, "steps run again, "), 40) << compiled.err;
  for (const char* plan : {"whole", "less"}) run_well(folder.path(), fmt::format("hone-run train {0}.hone --train x=x.npy,y=y.npy --quiet --out {0}.onnx", plan));
  EXPECT_TRUE(folder.read("less.onnx") == folder.read("whole.onnx"));
}

}  // namespace
}  // namespace hone::test
