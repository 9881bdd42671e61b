#include "tests/golden/ptx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/ptxas.h"
#include "backends/cuda/registers.h"
#include "runtime/plan/plan.h"
#include "tests/golden/recorded_run.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {

void expect_assembles_without_spills(const std::string& model) {
  if (not is_recorded(model)) GTEST_SKIP() << kNotRecorded;
  const std::optional<std::string> ptxas = find_ptxas();
  if (not ptxas) GTEST_SKIP() << "no ptxas on PATH or in /usr/local/cuda: NVIDIA's CUDA toolkit has it";
  const TempFolder folder;
  write_recorded(folder, model);
  run_well(folder.path(), "hone-compile model.onnx -r train.toml -o model.hone --target cuda");
  const plan::Plan plan = plan::load(folder / "model.hone");
  int levels = 0;
  for (const auto& [level, code] : plan.programs.at(0).code) {
    if (level.ends_with(".cubin")) continue;
    ++levels;
    const std::string_view ptx(reinterpret_cast<const char*>(code.data()), code.size());
    for (const char* gpu : {"sm_80", "sm_90", "sm_100"}) {
      if (level == "sm_90" and std::string_view(gpu) == "sm_80") continue;
      const Assembled assembled = assemble(*ptxas, ptx, gpu);
      EXPECT_FALSE(assembled.cubin.empty()) << gpu;
      EXPECT_THAT(assembled.report, ::testing::HasSubstr("Compiling entry function")) << gpu;
      if (level == "sm_90" or std::string_view(gpu) == "sm_80") EXPECT_THAT(spilling_kernels(assembled.report), ::testing::IsEmpty()) << gpu;  // what a GPU is given
    }
  }
  EXPECT_EQ(levels, 2);
}

}  // namespace hone::test
