#include "tests/golden/ptx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/ptxas.h"
#include "base/files.h"
#include "base/text.h"
#include "tests/golden/recorded_run.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {

namespace {

/// The lines of the report that tell of values which a kernel had no register for.
std::vector<std::string> spills_in(const std::string& report) {
  std::vector<std::string> lines;
  for (const std::string& line : split(report, '\n'))
    if (line.find(" bytes spill stores") != std::string::npos and line.find(" 0 bytes spill stores") == std::string::npos) lines.push_back(line);
  return lines;
}

}  // namespace

void expect_assembles(const std::string& model, Spills spills) {
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
    if (spills == Spills::kNone) EXPECT_THAT(spills_in(assembled.report), ::testing::IsEmpty()) << gpu;
  }
}

}  // namespace hone::test
