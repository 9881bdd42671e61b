// hone-compile --memory-limit: plans that make activations again rather than keep them train to the same bits in less memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "formats/npy.h"
#include "frontend/builder.h"
#include "frontend/onnx/export.h"
#include "runtime/library/arena.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"
#include "tests/tools/limited_plan.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kBatch = 12;

/// A chain of layers whose activations take far more than the weights do.
void write_deep_net(const TempFolder& folder) {
  nn::Model model("deep");
  nn::Value x = nn::reshape(model.input("image", {1, 8, 8}), {8, 8});
  for (int layer = 0; layer < 6; ++layer) x = nn::tanh(nn::dense(x, 16));
  model.output("logits", nn::dense(nn::flatten(x), 3));
  onnx::save(model.graph(), folder / "deep.onnx");
}

class MemoryLimit : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    write_conv_net(folder_);  // with its data
    if (GetParam() == "deep") write_deep_net(folder_);
    write_demanding_recipe(folder_, kBatch);
    run_well(folder_.path(), compile("whole", ""));
  }
  std::string compile(const std::string& plan, const std::string& flags) const { return fmt::format("hone-compile {}.onnx -r train.toml --levels x86-64-v3 -o {}.hone {}", GetParam(), plan, flags); }
  std::string train(const std::string& plan) const {
    return fmt::format("hone-run train {0}.hone --train image=x.npy,target=y.npy --epochs 3 --quiet --log-every 1 --run-dir {0} --out {0}.onnx", plan);
  }
  std::int64_t persistent() const { return persistent_bytes(plan::load(folder_ / "whole.hone").programs[0].persistents); }

  std::int64_t measured_arena(const std::string& name) const { return measured_arena_of_step(folder_ / (name + ".hone"), kBatch); }
  /// The least limit that the compiler says is enough.
  std::int64_t least_limit() const {
    const ToolRun refused = run_tool(folder_.path(), compile("none", fmt::format("--memory-limit {}", persistent() + 64)));
    EXPECT_EQ(refused.exit, 6) << refused.err;
    return number_behind(refused.err, "note: --memory-limit ");
  }

  TempFolder folder_;
};

TEST_P(MemoryLimit, TrainsToTheSameBitsInWhatWasPromised) {
  const std::int64_t limit = least_limit();
  const ToolRun compiled = run_well(folder_.path(), compile("less", fmt::format("--memory-limit {}", limit)));
  EXPECT_THAT(compiled.err, HasSubstr("% more arithmetic"));
  EXPECT_LE(persistent() + measured_arena("less"), limit);
  EXPECT_LT(measured_arena("less"), measured_arena("whole"));
  for (const char* plan : {"whole", "less"}) run_well(folder_.path(), train(plan));
  EXPECT_EQ(folder_.read("less.onnx"), folder_.read("whole.onnx"));
}

TEST_P(MemoryLimit, ALimitThatIsWideEnoughChangesNothing) {
  const ToolRun compiled = run_well(folder_.path(), compile("wide", "--memory-limit 1GiB"));
  EXPECT_THAT(compiled.err, Not(HasSubstr("more arithmetic")));
  EXPECT_EQ(measured_arena("wide"), measured_arena("whole"));
}

TEST_P(MemoryLimit, ReplicasTrainToTheSameBits) {
  run_well(folder_.path(), compile("less", fmt::format("--memory-limit {}", least_limit())));
  for (const char* plan : {"whole", "less"}) run_well(folder_.path(), train(plan) + " --virtual 2 --log-grad-norms");
  EXPECT_EQ(folder_.read("less.onnx"), folder_.read("whole.onnx"));
}

TEST_P(MemoryLimit, TheLargestBatchIsTheLargestThatFits) {
  const std::string run = fmt::format("hone-run train whole.hone --train image=x.npy,target=y.npy --steps 1 --out trained.onnx --memory-limit {} --batch ", persistent() + measured_arena("whole"));
  const std::int64_t batch = number_behind(run_well(folder_.path(), run + "auto").err, "Planned memory at batch ");
  EXPECT_GE(batch, 1);
  EXPECT_LE(batch, kBatch);
  run_well(folder_.path(), run + std::to_string(batch));
  const ToolRun refused = run_tool(folder_.path(), run + std::to_string(batch + 1));
  EXPECT_EQ(refused.exit, 6) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr(fmt::format("a batch of {} fits: --batch {}", batch, batch)));
}

/// Replicas keep gradients until they are exchanged: what they take is asked of their own step.
TEST_P(MemoryLimit, IsAskedOfTheStepThatReplicasRun) {
  const plan::Plan plan = plan::load(folder_ / "whole.hone");
  const plan::Entry* step = plan.programs[0].find(plan::replica_entry(plan::kTrainStep));
  ASSERT_NE(step, nullptr);
  const DimBindings sizes = sizes_for(plan.batch_symbol, kBatch);
  std::int64_t needed = arena_size(*step, sizes)->bytes + library_scratch(*step, sizes);
  for (const plan::Persistent& persistent : plan.programs[0].persistents) needed += static_cast<std::int64_t>(persistent.initial.byte_count());
  const auto run = [&](std::int64_t limit, const std::string& flags) {
    return run_tool(folder_.path(), fmt::format("hone-run train whole.hone --train image=x.npy,target=y.npy --steps 1 --out trained.onnx --virtual 2 --memory-limit {} {}", limit, flags));
  };
  EXPECT_EQ(run(needed, "").exit, 0);
  EXPECT_EQ(run(needed - 1, "").exit, 6);
  EXPECT_EQ(run(needed, fmt::format("--global-batch --batch {}", 2 * kBatch)).exit, 0) << "half of that for each";
}

INSTANTIATE_TEST_SUITE_P(, MemoryLimit, testing::Values("conv", "deep"), [](const auto& info) { return info.param; });

/// A limit that nobody holds is none.
TEST(MemoryLimitOfARun, IsRefusedWhereSizesAreKnownOnlyWhenRunning) {
  const TempFolder folder;
  TestModel model(18);
  model.input("x", {"N", "T", 4}).initializer("w", wavy({4, 2})).initializer("axes", ints({1})).output("y");
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("ReduceMean", {"h", "axes"}, {"y"}).set("keepdims", 0);
  folder.write("m.onnx", model.proto.SerializeAsString());
  write_npy(folder / "x.npy", wavy({8, 3, 4}));
  write_npy(folder / "y.npy", wavy({8, 2}));
  const std::string train = "hone-run train m.hone --train x=x.npy,target=y.npy --epochs 1 --quiet --out t.onnx --memory-limit 1GiB";
  run_well(folder.path(), "hone-compile m.onnx --set loss.kind=mse --set optimizer.kind=sgd -o m.hone");
  const ToolRun refused = run_tool(folder.path(), train);
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("--memory-limit 1GiB"), HasSubstr("known only when it runs"), HasSubstr("hone-compile --dim")));
  run_well(folder.path(), "hone-compile m.onnx --dim T=3 --set loss.kind=mse --set optimizer.kind=sgd -o m.hone");
  run_well(folder.path(), train);
}

}  // namespace
}  // namespace hone::test
