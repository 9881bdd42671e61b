// hone-run where a plan's products and convolutions are calls of a device's libraries: they train as the cpu does, with and without the libraries, captured or not, on one device and on several; and what
// is missing is said.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "frontend/builder.h"
#include "frontend/onnx/export.h"
#include "runtime/plan/plan.h"
#include "tests/support/tools/run_folders.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two convolutions and two layers, large enough to be worth a library's call: big.hone for the cpu and for sim, x.npy and y.npy with 24 samples.
void write_big_plan(const TempFolder& folder, const std::string& set = "") {
  nn::Model model("big");
  nn::Value x = nn::relu(nn::conv(model.input("image", {4, 12, 12}), 8, 3));
  x = nn::relu(nn::conv(x, 8, 3));
  model.output("logits", nn::dense(nn::relu(nn::dense(nn::flatten(x), 32)), 3));
  onnx::save(model.graph(), folder / "big.onnx");
  write_floats(folder, "x.npy", {24, 4, 12, 12});
  write_classes(folder, "y.npy", 24, 3);
  write_recipe(folder);
  run_well(folder.path(), "hone-compile big.onnx -r train.toml --levels x86-64-v3 --target cpu,sim -o big.hone" + set);
}

std::string train(const std::string& name, const std::string& flags, int batch = 8) {
  return fmt::format("hone-run train big.hone --train image=x.npy,target=y.npy --no-shuffle --epochs 2 --batch {2} --run-dir {0} --out {0}.onnx {1}", name, flags, batch);
}

TEST(DeviceLibraries, TrainAsTheCpuDoes) {
  const TempFolder folder;
  write_big_plan(folder);
  run_well(folder.path(), train("cpu", "--device cpu"));
  const ToolRun with = run_well(folder.path(), train("with", "--device sim"));
  EXPECT_THAT(with.err, Not(HasSubstr("calls no")));
  EXPECT_NEAR(last_loss(folder, "with"), last_loss(folder, "cpu"), 1e-5);
  const ToolRun without = run_well(folder.path(), "HONE_SIM=libraries=0 " + train("without", "--device sim"));
  EXPECT_THAT(without.err, AllOf(HasSubstr("sim:0 calls no cuBLASLt"), HasSubstr("sim:0 calls no cuDNN"), HasSubstr("own kernels")));
  EXPECT_NEAR(last_loss(folder, "without"), last_loss(folder, "cpu"), 1e-5);
}

TEST(DeviceLibraries, NarrowProductsAreTheirs) {
  const TempFolder folder;
  for (const char* precision : {"bf16", "f16"}) {
    write_big_plan(folder, fmt::format(" --set train.precision={}", precision));
    run_well(folder.path(), train(fmt::format("with_{}", precision), "--device sim"));
    run_well(folder.path(), "HONE_SIM=libraries=0 " + train(fmt::format("without_{}", precision), "--device sim"));
    EXPECT_NEAR(last_loss(folder, fmt::format("with_{}", precision)), last_loss(folder, fmt::format("without_{}", precision)), 0.02) << precision;
  }
}

/// What was chosen is kept from run to run, and is the same numbers either way. On sim the last algorithm is the fastest.
TEST(DeviceLibraries, AlgorithmsAreChosenByTimingAndKept) {
  const TempFolder folder;
  write_big_plan(folder);
  const std::string sim = "HONE_SIM=algorithms=3 ";
  run_well(folder.path(), sim + train("timed", "--device sim --choices cache/choices.json"));
  const auto choices = nlohmann::json::parse(folder.read("cache/choices.json")).at("choices");
  EXPECT_GE(choices.size(), 5U) << "forward, backward, validation";
  for (const auto& [call, choice] : choices.items()) {
    EXPECT_EQ(choice.at("choice"), "algorithm 2") << call;
    EXPECT_GT(choice.at("microseconds"), 0) << call;
  }
  EXPECT_THAT(choices.items().begin().key(), AllOf(HasSubstr("sim; cu"), HasSubstr("f32[8,")));
  const std::string kept = folder.read("cache/choices.json");
  run_well(folder.path(), sim + train("again", "--device sim --choices cache/choices.json"));
  EXPECT_EQ(folder.read("cache/choices.json"), kept) << "nothing is measured twice";
  run_well(folder.path(), sim + train("rule", "--device sim --deterministic --choices other.json"));
  EXPECT_FALSE(file_exists(folder / "other.json"));
  EXPECT_EQ(folder.read("timed.onnx"), folder.read("rule.onnx"));
  folder.write("cache/choices.json", kept.substr(0, kept.size() / 2));
  const ToolRun damaged = run_well(folder.path(), sim + train("damaged", "--device sim --choices cache/choices.json"));
  EXPECT_THAT(damaged.err, AllOf(HasSubstr("note: "), HasSubstr("cache/choices.json"), HasSubstr("measured anew")));
  EXPECT_EQ(folder.read("damaged.onnx"), folder.read("timed.onnx"));
}

/// A product with the kernel behind it, or both in one call: the same numbers, chosen by timing alone.
TEST(DeviceLibraries, DoWhatAKernelDoesInTheSameCallWhereThatIsFaster) {
  const TempFolder folder;
  write_big_plan(folder);
  const std::string sim = "HONE_SIM=epilogues=1 ";
  run_well(folder.path(), sim + train("apart", "--device sim --deterministic --choices other.json"));
  EXPECT_FALSE(file_exists(folder / "other.json"));
  run_well(folder.path(), sim + train("together", "--device sim --choices choices.json"));
  const std::string choices = folder.read("choices.json");
  EXPECT_THAT(choices, AllOf(HasSubstr("cublaslt.matmul_bias("), HasSubstr("together"), Not(HasSubstr("apart"))));
  EXPECT_NEAR(last_loss(folder, "together"), last_loss(folder, "apart"), 1e-6);
  run_well(folder.path(), sim + train("devices", "--device sim:0,1 --global-batch --choices choices.json"));
  EXPECT_THAT(folder.read("choices.json"), HasSubstr("cublaslt.matmul_bias_grad(")) << "without replicas an update sums it";
  EXPECT_NEAR(last_loss(folder, "devices"), last_loss(folder, "apart"), 1e-5);
  const ToolRun without = run_well(folder.path(), "HONE_SIM=libraries=0,epilogues=1 " + train("without", "--device sim"));
  EXPECT_NEAR(last_loss(folder, "without"), last_loss(folder, "apart"), 1e-5);
  const std::string why = run_well(folder.path(), "hone-compile big.onnx -r train.toml --target sim --levels x86-64-v3 --why -o why.hone").out;
  EXPECT_THAT(why, AllOf(HasSubstr("where a timing on the device says so"), HasSubstr("or both as cublaslt.matmul_bias")));
  EXPECT_THAT(run_well(folder.path(), "hone-compile big.onnx -r train.toml --target sim --emit schedule").out, HasSubstr("or both as call cublaslt.matmul_bias("));
  EXPECT_THAT(run_well(folder.path(), "hone-dump why.hone --as json").out, HasSubstr("cublaslt.matmul and "));
}

/// A call and the kernel behind it, two kernels, or one call: the work of the step is the same, and so is the number of its runs.
TEST(DeviceLibraries, AStepIsCountedOnceWhateverItTakes) {
  const TempFolder folder;
  write_big_plan(folder);
  run_well(folder.path(), "hone-compile big.onnx -r train.toml --levels x86-64-v3 --target sim -o sim.hone");
  const std::string bench = "hone-run bench sim.hone --device sim --steps 3 --warmup 0 --batch 8 ";
  const auto work = [&](const std::string& sim, const std::string& flags) {
    const auto sums = nlohmann::json::parse(run_well(folder.path(), "HONE_SIM=" + sim + " " + bench + "--roofline --json " + flags).out).at("roofline");
    return std::pair(sums.at("gflop_per_step").get<double>(), sums.at("gb_per_step").get<double>());
  };
  const auto together = work("epilogues=1", "--choices choices.json");
  EXPECT_THAT(folder.read("choices.json"), HasSubstr("together"));
  EXPECT_EQ(work("epilogues=1", "--deterministic"), together);
  EXPECT_EQ(work("libraries=0", ""), together);
  for (const char* sim : {"libraries=1", "libraries=0"}) {
    run_well(folder.path(), fmt::format("HONE_SIM={} {} --trace trace.json", sim, bench));
    const auto plan = nlohmann::json::parse(run_well(folder.path(), "hone-dump sim.hone --as json --trace trace.json").out);
    int with_epilogue = 0;
    for (const auto& entry : plan.at("program").at("entries"))
      if (entry.at("name") == "train_step")
        for (const auto& step : entry.at("steps")) {
          if (step.at("name").get<std::string>().find(" and ") == std::string::npos) continue;
          EXPECT_EQ(step.at("runs"), 20) << step;
          ++with_epilogue;
        }
    EXPECT_GT(with_epilogue, 0);
  }
}

/// Every call has a kernel beside it, and the compiler says which nodes are whose.
TEST(DeviceLibraries, AreChosenWithReasons) {
  const TempFolder folder;
  write_big_plan(folder);
  std::size_t calls = 0;
  const plan::Plan plan = plan::load(folder / "big.hone");
  for (const plan::Entry& entry : plan.programs[1].entries)
    for (const plan::Step& step : entry.steps) {
      const auto* library = std::get_if<plan::LibraryStep>(&step.what);
      if (library == nullptr) continue;
      ++calls;
      EXPECT_TRUE(library->own_kernel) << library->row;
    }
  EXPECT_GT(calls, 10U);
  const std::string why = run_well(folder.path(), "hone-compile big.onnx -r train.toml --target cuda --levels sm_80 --why -o why.hone").out;
  for (const char* row : {"cublaslt.matmul", "cudnn.conv, channels last", "cudnn.conv_input_grad", "cudnn.conv_weight_grad"}) EXPECT_THAT(why, HasSubstr(row));
  EXPECT_THAT(why, HasSubstr("products take less time than a call")) << "the last layer of three is small";
  const std::string schedule = run_well(folder.path(), "hone-compile big.onnx -r train.toml --target cuda --emit schedule").out;
  EXPECT_THAT(schedule, HasSubstr("or kernel "));
}

TEST(DeviceLibraries, DevicesExchangeWithoutTheHost) {
  const TempFolder folder;
  write_big_plan(folder);
  const ToolRun two = run_well(folder.path(), train("two", "--global-batch --device sim:0,1"));
  EXPECT_THAT(two.err, Not(HasSubstr("host's memory")));
  const ToolRun shared = run_well(folder.path(), train("virtual", "--global-batch --device sim:0 --virtual 2"));
  EXPECT_THAT(shared.err, AllOf(HasSubstr("several replicas share a device: it adds up their gradients"), Not(HasSubstr("host's memory"))));
  EXPECT_EQ(folder.read("two.onnx"), folder.read("virtual.onnx")) << "sums have one order";
  const ToolRun lost = run_tool(folder.path(), "HONE_SIM=lost_after=150 " + train("lost", "--global-batch --device sim:0,1"));
  EXPECT_EQ(lost.exit, 11) << lost.err;
}

/// A device's memory has its part of the moments alone.
TEST(DeviceLibraries, DevicesShareTheOptimizersWork) {
  const TempFolder folder;
  write_big_plan(folder);
  for (const char* devices : {"--device sim:0,1", "--device sim:0 --virtual 2"}) {
    run_well(folder.path(), train("whole", fmt::format("--global-batch {}", devices)));
    run_well(folder.path(), train("shared", fmt::format("--global-batch --shard-optimizer {}", devices)));
    EXPECT_EQ(folder.read("shared.onnx"), folder.read("whole.onnx")) << devices;
    for (const char* run : {"whole", "shared"}) std::filesystem::remove_all(folder / run);
  }
}

/// The batch is known not to fit before anything runs; --batch auto finds one that does, and --memory-growth lets it be seen.
TEST(DeviceLibraries, MemoryOfADeviceIsKnownBefore) {
  const TempFolder folder;
  write_big_plan(folder);
  const ToolRun refused = run_tool(folder.path(), train("refused", "--device sim --memory-limit 1500KiB", 24));
  EXPECT_EQ(refused.exit, 6) << refused.err;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("a training step of batch 24 takes"), HasSubstr("of data"), HasSubstr("--memory-limit 1500KiB"), HasSubstr("hone-compile --memory-limit"), HasSubstr("--shard-optimizer")));
  const ToolRun small = run_tool(folder.path(), "HONE_SIM=memory=1500KiB " + train("small", "--device sim", 24));
  EXPECT_EQ(small.exit, 6) << small.err;
  EXPECT_THAT(small.err, AllOf(HasSubstr("a training step of batch 24 takes"), HasSubstr("on its device")));
  EXPECT_FALSE(file_exists(folder / "small.onnx"));
  const ToolRun grown = run_tool(folder.path(), "HONE_SIM=memory=1500KiB " + train("grown", "--device sim --memory-growth", 24));
  EXPECT_EQ(grown.exit, 6) << grown.err;
  EXPECT_THAT(grown.err, AllOf(HasSubstr("the memory for one batch takes"), HasSubstr("sim:0 has"), HasSubstr("--batch auto")));
}

TEST(DeviceLibraries, TheLargestBatchThatADeviceHoldsIsFound) {
  const TempFolder folder;
  write_big_plan(folder);
  std::string before;
  for (const char* memory : {"2400KiB", "64MiB"}) {
    const ToolRun run = run_well(folder.path(), fmt::format("HONE_SIM=memory={} hone-run train big.hone --train image=x.npy,target=y.npy --epochs 1 --batch auto --device sim --json", memory));
    EXPECT_NE(run.err, before);
    before = run.err;
  }
  const ToolRun limited = run_well(folder.path(), train("limited", "--device sim:0 --virtual 2 --memory-limit 8MiB"));
  EXPECT_EQ(limited.exit, 0);
}

}  // namespace
}  // namespace hone::test
