// hone-run on devices with memory of their own, played by the host: the same plan trains there, on one, on several and on virtual ones; a device that is not here is refused with a way out.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "runtime/device/cpu.h"
#include "runtime/device/cuda_library.h"
#include "tests/support/tools/run_folders.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"
#include "tests/tools/resume.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// mlp.hone for the cpu and for sim.
void compile_for_both(const TempFolder& folder) {
  write_mlp(folder);
  run_well(folder.path(), "hone-compile mlp.onnx -r train.toml --target cpu,sim -o mlp.hone");
}

std::string train(const std::string& name) { return "hone-run train mlp.hone --train x=x.npy,y=y.npy --epochs 3 --run-dir " + name + " --out " + name + ".onnx"; }

TEST(RunOnDevices, OnePlanTrainsOnTheCpuAndOnADevice) {
  const TempFolder folder;
  compile_for_both(folder);
  run_well(folder.path(), train("cpu"));
  run_well(folder.path(), train("device") + " --device sim");
  EXPECT_NEAR(last_loss(folder, "device"), last_loss(folder, "cpu"), 2e-6);
  EXPECT_EQ(folder.read("device.onnx").size(), folder.read("cpu.onnx").size());
}

/// Sums of gradients have one order, wherever the replicas are.
TEST(RunOnDevices, ReplicasOnSeveralLearnWhatVirtualOnesLearn) {
  const TempFolder folder;
  compile_for_both(folder);
  run_well(folder.path(), train("two") + " --global-batch --device sim:0,1");
  run_well(folder.path(), train("virtual") + " --global-batch --device sim:1 --virtual 2");
  EXPECT_EQ(folder.read("two.onnx"), folder.read("virtual.onnx"));
  run_well(folder.path(), train("one") + " --device sim");
  EXPECT_NEAR(last_loss(folder, "two"), last_loss(folder, "one"), 2e-6);
  run_well(folder.path(), train("one8") + " --batch 8 --device sim");
  for (const auto& [name, devices] : {std::pair("shared", "sim:0,1,2,3 --virtual 2"), std::pair("eight", "sim:0,1,2,3,4,5,6,7")}) {
    const ToolRun run = run_well(folder.path(), train(name) + " --global-batch --batch 8 --device " + devices);
    EXPECT_THAT(run.err, HasSubstr("8 replicas"));
    EXPECT_NEAR(last_loss(folder, name), last_loss(folder, "one8"), 2e-6) << devices;
  }
  EXPECT_EQ(folder.read("eight.onnx"), folder.read("shared.onnx"));
}

/// Blocks run in another order on each.
TEST(RunOnDevices, AllOfAKindGiveTheSameBits) {
  const TempFolder folder;
  compile_for_both(folder);
  run_well(folder.path(), train("zero") + " --device sim:0");
  run_well(folder.path(), train("seven") + " --device sim:7");
  EXPECT_EQ(folder.read("zero.onnx"), folder.read("seven.onnx"));
}

/// sim refuses a capture then.
TEST(RunOnDevices, WithoutGraphsTheBitsAreTheSame) {
  const TempFolder folder;
  compile_for_both(folder);
  run_well(folder.path(), train("captured") + " --device sim");
  run_well(folder.path(), "HONE_SIM=graphs=0 " + train("eager") + " --device sim");
  EXPECT_EQ(folder.read("eager.onnx"), folder.read("captured.onnx"));
}

TEST(RunOnDevices, AfterADeviceWasLostTheRunGoesOnFromItsLastCheckpoint) {
  const TempFolder folder;
  compile_for_both(folder);
  const std::string saving = " --save-steps 2 --device sim";
  run_well(folder.path(), train("whole") + saving);
  const ToolRun lost = run_tool(folder.path(), "HONE_SIM=lost_after=60 " + train("lost") + saving);
  EXPECT_EQ(lost.exit, 11);
  EXPECT_THAT(lost.err, AllOf(HasSubstr("HN-0901"), HasSubstr("sim:0 was lost"), HasSubstr("--resume")));
  run_well(folder.path(), train("lost") + saving + " --resume");
  EXPECT_EQ(folder.read("lost.onnx"), folder.read("whole.onnx"));
}

TEST(RunOnDevices, MemoryThatADeviceDoesNotHaveIsRefused) {
  const TempFolder folder;
  compile_for_both(folder);
  const ToolRun run = run_tool(folder.path(), "HONE_SIM=memory=600 " + train("small") + " --device sim");
  EXPECT_EQ(run.exit, 6);
  EXPECT_THAT(run.err, AllOf(HasSubstr("sim:0 has"), HasSubstr("smaller batch")));
  EXPECT_THAT(run_tool(folder.path(), "HONE_SIM=colour=red " + train("wrong") + " --device sim").err, HasSubstr("HONE_SIM takes"));
}

TEST(RunOnDevices, PredictsAndCalls) {
  const TempFolder folder;
  compile_for_both(folder);
  run_well(folder.path(), "hone-run predict mlp.hone --data x=x.npy --device sim --out sim.npy");
  run_well(folder.path(), "hone-run predict mlp.hone --data x=x.npy --device cpu --out cpu.npy");
  EXPECT_EQ(folder.read("sim.npy").size(), folder.read("cpu.npy").size());
}

TEST(RunOnDevices, ARefusalSaysWhatToDo) {
  const TempFolder folder;
  compile_for_both(folder);
  const auto refused = [&](const std::string& device) {
    const ToolRun run = run_tool(folder.path(), train("refused") + " --device " + device);
    EXPECT_EQ(run.exit, 2) << device;
    return run.err;
  };
  EXPECT_THAT(refused("sim:99"), AllOf(HasSubstr("\"sim:99\""), HasSubstr("there are 8"), HasSubstr("hone-run devices")));
  EXPECT_THAT(refused("sim:x"), AllOf(HasSubstr("\"x\" is no number"), HasSubstr("cuda:0")));
  EXPECT_THAT(refused("sim:1,1"), AllOf(HasSubstr("named twice"), HasSubstr("--virtual 2")));
  EXPECT_THAT(refused("simm"), AllOf(HasSubstr("\"simm\""), HasSubstr("sim")));
  std::string why;
  if (cuda::library(&why) != nullptr) GTEST_SKIP() << "there is a GPU here: that cuda is refused without one cannot be seen";
  EXPECT_THAT(refused("cuda"), AllOf(HasSubstr("cannot be used"), HasSubstr("NVIDIA driver"), HasSubstr("--device cpu"), HasSubstr("hone-run devices")));
}

TEST(RunOnDevices, APlanWithoutAProgramForItSaysHowToGetOne) {
  const TempFolder folder;
  write_mlp_plan(folder);
  const ToolRun run = run_tool(folder.path(), train("none") + " --device sim");
  EXPECT_EQ(run.exit, 10);
  EXPECT_THAT(run.err, AllOf(HasSubstr("no program for sim"), HasSubstr("--target cpu,sim")));
}

/// hone-run starts itself a second time, from a thread that OpenMP has bound to a core.
TEST(RunOnDevices, TheCpuHasAllItsCoresWhereOpenMpBindsThreads) {
  const TempFolder folder;
  const auto first_line = [&](const std::string& environment) {
    const std::string out = run_well(folder.path(), environment + "hone-run devices").out;
    return out.substr(0, out.find('\n'));
  };
  const char* spins = std::getenv("GOMP_SPINCOUNT");
  const std::string kept = spins == nullptr ? "" : spins;
  unsetenv("GOMP_SPINCOUNT");
  EXPECT_EQ(first_line("OMP_PROC_BIND=true "), first_line(""));
  EXPECT_EQ(first_line("OMP_PROC_BIND=close OMP_PLACES=cores "), first_line(""));
  EXPECT_THAT(first_line(fmt::format("OMP_PROC_BIND=true OMP_PLACES={{{}}} ", this_core())), HasSubstr(" 1 core "));
  if (spins != nullptr) setenv("GOMP_SPINCOUNT", kept.c_str(), 1);
}

TEST(RunOnDevices, AreListedWithTheirLibraries) {
  const TempFolder folder;
  const std::string text = run_well(folder.path(), "hone-run devices").out;
  for (const char* name : {"cpu", "cuda", "sim", "cuBLASLt", "cuDNN", "NCCL"}) EXPECT_THAT(text, HasSubstr(name));
}

}  // namespace
}  // namespace hone::test
