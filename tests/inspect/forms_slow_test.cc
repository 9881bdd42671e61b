// Every form of every recorded model and of the light networks, as they came in, and of the largest training step is there within seconds.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/tools/run_tool.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

constexpr double kMostSeconds = 5;  // of processor time

void expect_all_forms_soon(const TempFolder& folder, const std::string& file) {
  for (const std::string form : {"text", "dot", "svg", "json", "html"}) {
    const ToolRun run = run_well(folder.path(), "hone-dump " + file + " --as " + form + " > shown");
    EXPECT_LT(run.seconds, kMostSeconds) << file << " as " << form;
    EXPECT_GT(std::filesystem::file_size(folder / "shown"), 100U) << file << " as " << form;
  }
}

std::vector<std::string> models_in(const std::string& folder) {
  std::vector<std::string> models;
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.path().extension() == ".onnx") models.push_back(entry.path().string());
  std::ranges::sort(models);
  return models;
}

TEST(Forms, OfEveryModelAreThereSoon) {
  const std::string shared = HONE_SHARED_DIR;
  std::vector<std::string> models = models_in(shared + "/onnx-backend-tests/light");
  std::ranges::copy(models_in(shared + "/models"), std::back_inserter(models));
  if (models.empty()) GTEST_SKIP() << "../shared is not here";
  TempFolder folder;
  for (const std::string& model : models) expect_all_forms_soon(folder, model);
}

/// The largest training step of all: of densenet121, more than 10,000 nodes, with no modules in its names.
TEST(Forms, OfTheLargestTrainingStepAreThereSoon) {
  const std::string model = std::string(HONE_SHARED_DIR) + "/onnx-backend-tests/light/light_densenet121.onnx";
  if (not std::filesystem::exists(model)) GTEST_SKIP() << "../shared/onnx-backend-tests is not here";
  TempFolder folder;
  folder.write("train.toml", "[model]\ninitialize = \"he_normal\"\n[loss]\nkind = \"softmax_cross_entropy\"\nclass_axis = 1\n[optimizer]\nkind = \"adam\"\n");
  run_well(folder.path(), "hone-compile " + model + " -r train.toml --levels x86-64-v3 -o densenet121.hone");
  expect_all_forms_soon(folder, "densenet121.hone");
}

}  // namespace
}  // namespace hone::test
