// The HTML page in a headless Chromium: it answers what people ask of it, by clicks. Skipped where none is installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "inspect/forms.h"
#include "tests/inspect/chromium.h"
#include "tests/inspect/hostile_model.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A plan's page, opened.
class Page : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto program = Chromium::find();
    if (not program) GTEST_SKIP() << "no Chromium is installed: the page is not opened";
    browser_.emplace(*program, folder_ / "profile", 1400, 900);
    write_plan();
  }
  virtual void write_plan() {
    write_conv_plan(folder_);
    show("conv.hone");
  }
  void TearDown() override {
    if (browser_) EXPECT_THAT(browser_->errors(), IsEmpty());
  }
  void show(const std::string& arguments) {
    folder_.write("page.html", run_well(folder_.path(), "hone-dump " + arguments + " --as html").out);
    browser_->open(folder_ / "page.html");
  }
  void settle() { browser_->evaluate("new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 450))"); }
  std::string details() { return browser_->text_of("#detail"); }
  /// How many different colours a canvas shows: one or none where nothing was drawn.
  int colours(const std::string& canvas) {
    return browser_->evaluate("(c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size)(document.querySelector('" + canvas + " canvas'))").get<int>();
  }
  TempFolder folder_;
  std::optional<Chromium> browser_;
};

TEST_F(Page, BeginsWithWhatMattersMost) {
  EXPECT_EQ(browser_->evaluate("document.title"), "conv.onnx · Hone");
  const std::string overview = browser_->text_of("#overview");
  for (const std::string words : {"Kernels that take most time", "Alive at the memory peak", "Nodes that became one kernel", "adam"}) EXPECT_THAT(overview, HasSubstr(words));
  EXPECT_GT(browser_->screenshot().size(), 20'000U);
}

TEST_F(Page, DrawsEveryTab) {
  for (const std::string tab : {"graph", "schedule", "memory"}) {
    browser_->click("#tab-" + tab);
    settle();
    EXPECT_GT(colours(tab == "graph" ? "#graph-node" : tab == "schedule" ? "#gantt" : "#memory"), 20) << tab;
  }
  browser_->click("#tab-kernels");
  EXPECT_EQ(browser_->evaluate("document.querySelectorAll('#kernels tbody tr').length"), browser_->evaluate("kernelRows().length"));
}

TEST_F(Page, AClickOnANodeTellsAboutIt) {
  browser_->click("#tab-graph");
  settle();
  const json at = browser_->evaluate(R"((() => { const conv = model.graph.nodes.find(n => n.op === 'conv'), picture = page.graph, box = picture.scene.items.get(conv.id);
    picture.camera.show({ x: box.x - 100, y: box.y - 100, width: box.width + 200, height: box.height + 200 }, false);
    const r = picture.camera.canvas.getBoundingClientRect(); return [r.x + picture.camera.toScreenX(box.x + box.width / 2), r.y + picture.camera.toScreenY(box.y + box.height / 2)]; })())");
  browser_->click_at(at[0], at[1]);
  settle();
  const std::string text = details();
  for (const std::string words : {"forward", "conv", "f32[4,1,3,3]", "Gradient computed by", "Attributes", "strides", "FLOPs", "Kernel: step"}) EXPECT_THAT(text, HasSubstr(words));
}

TEST_F(Page, GoesWhereTheSearchFinds) {
  browser_->click("#search");
  browser_->type("dense/kernel");
  EXPECT_THAT(browser_->text_of("#hits"), HasSubstr("dense/kernel"));
  browser_->press_enter();
  settle();
  EXPECT_THAT(details(), HasSubstr("all_reduce, bucket"));
  browser_->click("#search");
  browser_->evaluate("document.getElementById('search').value = ''");
  browser_->type("no such thing");
  EXPECT_THAT(browser_->text_of("#hits"), HasSubstr("nothing has that"));
}

TEST_F(Page, AModuleOpensAndTheWayBackStandsAbove) {
  browser_->click("#tab-graph");
  settle();
  const double before = browser_->evaluate("page.graph.camera.scale").get<double>();
  browser_->evaluate("page.graph.open(page.graph.scene.boxes.find(b => b.kind === kinds.group))");
  settle();
  EXPECT_GT(browser_->evaluate("page.graph.camera.scale").get<double>(), before);
  EXPECT_GE(browser_->evaluate("document.querySelectorAll('.crumbs button').length").get<int>(), 2);
  browser_->click(".crumbs button");
  settle();
  EXPECT_NEAR(browser_->evaluate("page.graph.camera.scale").get<double>(), before, 1e-9);
}

TEST_F(Page, TheWheelZoomsAndNothingLeavesTheCanvas) {
  browser_->click("#tab-graph");
  settle();
  const double before = browser_->evaluate("page.graph.camera.scale").get<double>();
  browser_->wheel(700, 500, -400);
  settle();
  EXPECT_GT(browser_->evaluate("page.graph.camera.scale").get<double>(), 1.5 * before);
  EXPECT_EQ(browser_->evaluate("document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight"), true);
}

TEST_F(Page, TheTableIsSortedByTheColumnThatIsClicked) {
  browser_->click("#tab-kernels");
  const auto calls = [&] { return browser_->evaluate("[...document.querySelectorAll('#kernels tbody tr')].map(tr => Number(tr.children[4].textContent))").get<std::vector<int>>(); };
  browser_->click("#kernels th:nth-child(5)");
  EXPECT_TRUE(std::ranges::is_sorted(calls(), std::greater()));
  browser_->click("#kernels th:nth-child(5)");
  EXPECT_TRUE(std::ranges::is_sorted(calls()));
}

TEST_F(Page, IsLightAndDark) {
  const auto background = [&] { return browser_->evaluate("getComputedStyle(document.body).backgroundColor"); };
  const json before = background();
  browser_->click("#theme");
  EXPECT_NE(background(), before);
}

TEST_F(Page, OfOtherFilesOpensToo) {
  run_well(folder_.path(), "hone-run train conv.hone --train x=x.npy,y=y.npy --epochs 1 --quiet --out trained.safetensors");
  for (const std::string file : {"conv.onnx", "conv.hone --stage predict", "conv.hone --stage imported", "trained.safetensors"}) {
    show(file);
    EXPECT_THAT(browser_->text_of("#overview"), HasSubstr("parameters")) << file;
    browser_->evaluate("page.tabs.forEach(t => page.open(t[0]))");
    settle();
    EXPECT_THAT(browser_->errors(), IsEmpty()) << file;
  }
}

/// A page whose every name would like to be markup: the policy lets none act, and none is markup.
TEST_F(Page, OfAModelWithHostileNamesIsAPageLikeAnyOther) {
  const Hostile hostile;
  folder_.write("page.html", find_form("html").write(hostile.plan, {}));
  browser_->open(folder_ / "page.html");
  browser_->evaluate("page.tabs.forEach(t => page.open(t[0]))");
  settle();
  EXPECT_EQ(browser_->evaluate("[document.scripts.length, document.images.length, document.querySelectorAll('svg, iframe, object, b').length - document.querySelectorAll('.facts b').length]"), json({3, 0, 0}));
  for (const std::string kind : {"weight", "node", "step"})
    browser_->evaluate("(ids => ids.forEach((_, id) => page.select({ kind: '" + kind + "', id }, true)))(" + (kind == "weight" ? "model.weights" : kind == "node" ? "model.graph.nodes" : "model.steps") + ")");
  browser_->click("#search");
  browser_->type("<img");
  EXPECT_THAT(browser_->text_of("#hits"), HasSubstr("<img src=x onerror=alert(1)>"));
}

/// What a person asks who has never seen Hone, of torch_resnet_tiny.
class ResnetPage : public Page {
 protected:
  void write_plan() override {
    const std::string model = std::string(HONE_SHARED_DIR) + "/models/torch_resnet_tiny/model.onnx";
    if (not std::filesystem::exists(model)) GTEST_SKIP() << "../shared/models is not here";
    folder_.write("train.toml", "[model]\noutput = \"logits\"\n[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"sgd\"\nmomentum = 0.9\n");
    run_well(folder_.path(), "hone-compile " + model + " -r train.toml --levels x86-64-v3 -o resnet.hone");
    plan_ = json::parse(run_well(folder_.path(), "hone-dump resnet.hone --as json").out);
    show("resnet.hone");
  }
  const json& train_step() const { return plan_["program"]["entries"][0]; }
  json plan_;
};

/// The slowest kernel's steps, with what the trace says in place of estimates.
TEST_F(ResnetPage, WhichKernelsTakeMostTime) {
  ASSERT_EQ(train_step()["name"], "train_step");
  const json& steps = train_step()["steps"];
  const auto slowest = std::ranges::max_element(steps, {}, [](const json& step) { return step["nodes"].size(); }) - steps.begin();
  json events = json::array();
  double clock = 0;
  for (const json& step : steps) {
    const double time = step["id"] == slowest ? 5000 : 10;
    events.push_back({{"ph", "X"}, {"pid", 0}, {"tid", 0}, {"name", step["name"]}, {"ts", clock}, {"dur", time}, {"args", {{"origin", step["origin"]}}}});
    clock += time;
  }
  folder_.write("trace.json", json{{"traceEvents", events}}.dump());
  EXPECT_THAT(browser_->text_of("#slowest"), HasSubstr("Estimated"));
  show("resnet.hone --trace trace.json");
  EXPECT_THAT(browser_->text_of("#slowest"), HasSubstr("Measured"));
  browser_->click("#slowest button");
  EXPECT_THAT(details(), HasSubstr("Step " + std::to_string(slowest) + ":"));
  EXPECT_THAT(details(), HasSubstr("5.00 ms"));
  browser_->click("#tab-schedule");
  settle();
  EXPECT_GT(colours("#gantt"), 20);
}

TEST_F(ResnetPage, WhatIsAliveAtTheMemoryPeak) {
  const json& memory = train_step()["memory"];
  const json& largest = train_step()["buffers"][memory["alive_at_peak"][0].get<std::size_t>()];
  EXPECT_THAT(browser_->text_of("#peak"), HasSubstr("step " + memory["peak_step"].dump()));
  browser_->click("#peak .bars button");
  EXPECT_THAT(details(), HasSubstr("steps " + largest["first_step"].dump() + " to " + largest["last_step"].dump()));
  browser_->click("#tab-memory");
  settle();
  EXPECT_GT(colours("#memory"), 20);
}

TEST_F(ResnetPage, WhereTheGradientOfConv1IsReduced) {
  browser_->click("#search");
  browser_->type("conv1.weight");
  browser_->press_enter();
  settle();
  EXPECT_THAT(details(), HasSubstr("reduced in"));
  const json& reduced = plan_["weights"][0]["all_reduce"];
  ASSERT_EQ(plan_["weights"][0]["name"], "conv1.weight");
  EXPECT_THAT(details(), HasSubstr("all_reduce, bucket " + reduced["bucket"].dump()));
  browser_->evaluate("[...document.querySelectorAll('#detail button')].find(b => b.textContent.startsWith('all_reduce')).id = 'reduced'");
  browser_->click("#reduced");
  settle();
  EXPECT_THAT(details(), HasSubstr("Gradients that are reduced here"));
  EXPECT_THAT(details(), HasSubstr("conv1.weight"));
}

TEST_F(ResnetPage, WhichNodesBecameOneKernel) {
  std::size_t most = 0;
  for (const json& step : train_step()["steps"]) most = std::max(most, step["nodes"].size());
  browser_->click("#fused button");
  EXPECT_THAT(details(), HasSubstr(std::to_string(most) + " nodes became this kernel"));
  EXPECT_THAT(details(), HasSubstr("Pseudo-code"));
  EXPECT_THAT(details(), HasSubstr("BatchNormalization"));
}

}  // namespace
}  // namespace hone::test
