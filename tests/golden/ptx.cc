#include "tests/golden/ptx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/ptxas.h"
#include "base/files.h"
#include "tests/golden/recorded_run.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {

void expect_assembles(const std::string& model) {
  if (not is_recorded(model)) GTEST_SKIP() << kNotRecorded;
  const std::optional<std::string> ptxas = find_ptxas();
  if (not ptxas) GTEST_SKIP() << "no ptxas on PATH or in /usr/local/cuda: NVIDIA's CUDA toolkit has it";
  const TempFolder folder;
  write_recorded(folder, model);
  run_well(folder.path(), "hone-compile model.onnx -r train.toml --emit ptx:kernels.ptx");
  const MappedFile file(folder / "kernels.ptx");
  const std::string_view ptx(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  for (const char* gpu : {"sm_80", "sm_90", "sm_100"}) {
    const Assembled assembled = assemble(*ptxas, ptx, gpu);
    EXPECT_FALSE(assembled.cubin.empty()) << gpu;
    EXPECT_THAT(assembled.report, ::testing::HasSubstr("Compiling entry function")) << gpu;
  }
}

}  // namespace hone::test
