// The cases that every driver must pass, on sim; and on a GPU, if there is one.
#include "tests/runtime/device_conformance.h"

#include <gtest/gtest.h>

#include "api/hone.h"
#include "runtime/device/drivers.h"
#include "runtime/device/sim_device.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

/// Two layers and a softmax: products, sums over rows, and what is done to each element.
plan::Plan plan_for(const std::string& target) {
  const TempFolder folder;
  nn::Model model("mlp");
  const nn::Value hidden = nn::relu(nn::dense(model.input("x", {20}), 33));
  model.output("y", nn::softmax(nn::dense(hidden, 10)));
  save_model(model, folder / "mlp.onnx");
  return compile_model(folder / "mlp.onnx", Recipe{}, {.targets = {"cpu", target}, .levels = {"native"}});
}

class DeviceConformance : public testing::TestWithParam<DeviceCase> {};

TEST_P(DeviceConformance, HoldsOnSim) {
  static const plan::Plan plan = plan_for("sim");
  for (const bool has_all : {true, false}) {
    const SimOptions options = {.memory_bytes = 1 << 28, .has_libraries = has_all, .makes_graphs = has_all};
    EXPECT_EQ(run_on(std::make_unique<SimDevice>(options), "sim", plan, GetParam()), "") << (has_all ? "with" : "without") << " libraries and graphs";
  }
}

INSTANTIATE_TEST_SUITE_P(, DeviceConformance, testing::ValuesIn(device_cases().begin(), device_cases().end()), [](const auto& info) { return std::string(info.param.name); });

TEST(DeviceConformanceOnAGpu, Holds) {
  const Driver& cuda = all_drivers().front();
  const std::vector<int> usable = usable_devices(cuda);
  if (usable.empty()) GTEST_SKIP() << "there is no GPU here";
  const plan::Plan plan = plan_for("cuda");
  for (const DeviceCase& each : device_cases()) EXPECT_EQ(run_on(cuda.open(usable.front()), std::string(cuda.name), plan, each), "") << each.name;
}

}  // namespace
}  // namespace hone::test
