// The page of every recorded model, of its training plan, and of every light network opens in a headless Chromium without an error, on every tab. Skipped where none is installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/golden/recorded_run.h"
#include "tests/inspect/chromium.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {
namespace {

using ::testing::IsEmpty;

class AllPages : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = Chromium::find();
    if (not program_) GTEST_SKIP() << "no Chromium is installed: no page is opened";
  }
  /// Opens the page, goes to every tab, and selects the first and the last of what can be selected.
  void expect_opens(const std::string& file) {
    SCOPED_TRACE(file);
    if (not browser_) browser_.emplace(*program_, folder_ / "profile", 1400, 900);
    run_well(folder_.path(), "hone-dump " + file + " --as html > page.html");
    browser_->open(folder_ / "page.html");
    EXPECT_GT(browser_->evaluate("model.graph.nodes.length").get<int>(), 0);
    browser_->evaluate(R"((async () => {
      for (const [id] of page.tabs) { page.open(id); await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))); }
      for (const [kind, list] of [['node', model.graph.nodes], ['step', model.steps], ['weight', model.weights]])
        for (const id of [0, list.length - 1]) if (list.length) page.select({ kind, id }, true);
      page.open('graph'); page.graph.foldAll(true); page.graph.foldAll(false);
      await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    })())");
    EXPECT_THAT(browser_->errors(), IsEmpty());
  }
  std::optional<std::string> program_;
  TempFolder folder_;
  std::optional<Chromium> browser_;
};

TEST_F(AllPages, OfRecordedModelsAndTheirPlansOpen) {
  int opened = 0;
  for (const std::string& name : recorded(Recorded::kModels)) {
    if (not is_recorded(name)) GTEST_SKIP() << kNotRecorded;
    const TempFolder recorded_folder;
    write_recorded(recorded_folder, name);
    run_well(recorded_folder.path(), "hone-compile model.onnx -r train.toml --levels x86-64-v3 -o model.hone");
    for (const char* file : {"model.onnx", "model.hone"}) expect_opens(recorded_folder / file);
    ++opened;
  }
  EXPECT_GE(opened, 18);
}

TEST_F(AllPages, OfLightNetworksOpen) {
  const std::filesystem::path light = std::string(HONE_SHARED_DIR) + "/onnx-backend-tests/light";
  if (not std::filesystem::is_directory(light)) GTEST_SKIP() << "../shared/onnx-backend-tests is not here";
  int opened = 0;
  for (const auto& entry : std::filesystem::directory_iterator(light))
    if (entry.path().extension() == ".onnx") expect_opens(entry.path().string()), ++opened;
  EXPECT_EQ(opened, 9);
}

}  // namespace
}  // namespace hone::test
