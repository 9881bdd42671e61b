// Names that come from a model can be anything, and break no form in which hone-dump shows it: every form is read back by a program that knows nothing of Hone.
#include <gmock/gmock.h>
#include <graphviz/cgraph.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <set>

#include "base/text.h"
#include "formats/npy.h"
#include "formats/onnx_file.h"
#include "frontend/onnx/export_step.h"
#include "inspect/clean_text.h"
#include "inspect/diff.h"
#include "inspect/forms.h"
#include "inspect/summary.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "tests/frontend/test_model.h"
#include "tests/inspect/hostile_model.h"
#include "tests/support/hostile_names.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

/// Made once: it takes its time.
const Hostile& hostile() {
  static const Hostile made;
  return made;
}

std::string form(const std::string& name, const Contents& contents, const std::string& stage = "") { return find_form(name).write(contents, {.stage = stage}); }

/// Both the model and the training step.
void for_each_file(const std::function<void(const Contents&)>& check) {
  SCOPED_TRACE("model");
  check(hostile().model);
  SCOPED_TRACE("plan");
  check(hostile().plan);
}

TEST(HostileNames, AreTwoHundredDifferentOnes) {
  const std::vector<std::string> names = hostile_names();
  EXPECT_EQ(names.size(), 200U);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 200U);
}

void expect_names_reach_the_graph() {
  for (const std::string& name : hostile_names()) EXPECT_NE(hostile().model.model->graph.find_input(name), nullptr) << quoted(name);
}

void expect_hir_holds() {
  for (const std::string stage : {"imported", "train_step", "predict"}) {
    const std::string text = stage_text(*hostile().plan.plan, stage);
    const Graph graph = parse_graph(text, "hostile.hir");
    EXPECT_EQ(print(graph), text) << stage;
    for (const std::string& name : hostile_names()) EXPECT_NE(graph.find_input(name), nullptr) << stage << " " << quoted(name);
  }
}

void expect_json_holds() {
  for_each_file([](const Contents& contents) {
    const json parsed = json::parse(form("json", contents));  // throws for what is none, and for what is not UTF-8
    std::set<std::string> weights;
    for (const json& value : parsed["graph"]["values"])
      if (value.value("role", "") == "weight") weights.insert(value["input"].get<std::string>());
    for (const std::string& name : hostile_names())
      if (name.size() < 1000 and clean_text(name).find("\xef\xbf\xbd") == std::string::npos) EXPECT_TRUE(weights.contains(name)) << quoted(name);
  });
}

void expect_dot_holds() {
  for_each_file([](const Contents& contents) {
    const std::string text = form("dot", contents);
    ASSERT_EQ(text.find('\0'), std::string::npos);
    const std::unique_ptr<Agraph_t, int (*)(Agraph_t*)> read(agmemread(text.c_str()), agclose);
    ASSERT_NE(read, nullptr);
    const Graph graph = graph_of(contents, "");
    std::size_t boxes = graph.node_count() + graph.outputs().size();
    for (const Input& input : graph.inputs()) boxes += not graph.scalar_constant(input.value);
    EXPECT_EQ(agnnodes(read.get()), static_cast<int>(boxes));
    EXPECT_EQ(agnsubg(read.get()), 0);
  });
}

void expect_svg_holds() {
  for_each_file([](const Contents& contents) {
    const std::string text = form("svg", contents);
    pugi::xml_document svg;
    const pugi::xml_parse_result result = svg.load_buffer(text.data(), text.size(), pugi::parse_full);
    ASSERT_TRUE(result) << result.description();
    std::set<std::string> elements, attributes;
    struct Collect : pugi::xml_tree_walker {
      std::set<std::string>&elements, &attributes;
      Collect(std::set<std::string>& e, std::set<std::string>& a) : elements(e), attributes(a) {}
      bool for_each(pugi::xml_node& node) override {
        if (node.type() == pugi::node_element) elements.insert(node.name());
        for (const pugi::xml_attribute& attribute : node.attributes()) attributes.insert(attribute.name());
        return true;
      }
    } collect(elements, attributes);
    svg.traverse(collect);
    EXPECT_EQ(elements, (std::set<std::string>{"g", "path", "rect", "style", "svg", "text", "title"}));
    EXPECT_EQ(attributes, (std::set<std::string>{"class", "d", "encoding", "height", "rx", "text-anchor", "version", "viewBox", "width", "x", "xmlns", "y"}));
    EXPECT_EQ(svg.select_nodes("//g[starts-with(@class, 'item')]").size(), graph_of(contents, "").node_count());
    for (const std::string& line : split(text, '\n')) EXPECT_EQ(clean_text(line), line);
  });
}

/// Pictures of schedules name weights, nodes and buffers.
void expect_schedules_hold() {
  const std::string dot = form("dot", hostile().plan, "schedule"), svg = form("svg", hostile().plan, "schedule");
  const std::unique_ptr<Agraph_t, int (*)(Agraph_t*)> read(agmemread(dot.c_str()), agclose);
  ASSERT_NE(read, nullptr);
  int steps = 0;
  for (Agnode_t* node = agfstnode(read.get()); node != nullptr; node = agnxtnode(read.get(), node)) steps += agnameof(node)[0] == 'i';
  pugi::xml_document picture;
  ASSERT_TRUE(picture.load_buffer(svg.data(), svg.size(), pugi::parse_full));
  const std::size_t expected = hostile().plan.plan->programs[0].find(plan::kTrainStep)->steps.size();
  EXPECT_EQ(steps, static_cast<int>(expected));
  EXPECT_EQ(picture.select_nodes("//g[starts-with(@class, 'item')]").size(), expected);
  for (const std::string& text : {dot, svg})
    for (const std::string& line : split(text, '\n')) EXPECT_EQ(clean_text(line), line);
}

/// Scripts are the page's own three; what stands between their tags has no tag, and the first is the description.
void expect_html_holds() {
  for_each_file([](const Contents& contents) {
    const std::string page = form("html", contents);
    std::vector<std::size_t> begins;
    for (std::size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1)) begins.push_back(at);
    ASSERT_EQ(begins.size(), 3U);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t begin = page.find('>', begins[i]) + 1, end = page.find('<', begin);
      EXPECT_EQ(page.substr(end, 9), "</script>");
      const json data = json::parse(page.substr(begin, end - begin));
      if (i == 0) EXPECT_EQ(data, json::parse(form("json", contents)));
    }
    const std::string title = page.substr(page.find("<title>") + 7, page.find("</title>") - page.find("<title>") - 7);
    EXPECT_THAT(title, Not(HasSubstr("<")));
    for (const char c : page) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 or c == '\n') << static_cast<int>(c);
  });
}

/// Whoever prints it must not have their terminal turned, cleared or coloured.
void expect_terminals_hold() {
  for (const std::string& text : {form("text", hostile().plan), form("text", hostile().model), form("text", hostile().plan, "kernels"), form("text", hostile().plan, "train_step"),
                                  summary_text(hostile().plan, {}), summary_text(hostile().model, {})})
    for (const char c : text)
      if (static_cast<unsigned char>(c) < 0x20 and c != '\n') FAIL() << "character " << static_cast<int>(c);
}

void expect_generated_code_holds() {
  std::set<std::string> symbols;
  for (const plan::Entry& entry : hostile().plan.plan->programs[0].entries)
    for (const plan::Step& step : entry.steps)
      if (const auto* kernel = std::get_if<plan::KernelStep>(&step.what)) symbols.insert(kernel->symbol);
  ASSERT_GT(symbols.size(), 1U);
  for (const std::string& symbol : symbols) EXPECT_TRUE(std::ranges::all_of(symbol, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) or c == '_'; })) << symbol;
}

void expect_training_holds() {
  const TempFolder& folder = hostile().folder;
  write_npy(folder / "x.npy", wavy({8, 3}));
  write_npy(folder / "y.npy", wavy({8, 3}));
  run_well(folder.path(), "hone-run train hostile.hone --train x=x.npy,y=y.npy --epochs 1 --quiet --out trained.onnx --trace trace.json");
  EXPECT_GT(json::parse(folder.read("trace.json")).at("traceEvents").size(), 1U);
  const Contents trained = load_contents(folder / "trained.onnx");
  const std::vector<Difference> differences = compare(hostile().plan, trained);
  EXPECT_GT(differences.size(), 1U);
  const std::string lines = to_text(differences);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(lines, '\n')), 1 + differences.size()) << "a heading, and a line each";
  EXPECT_TRUE(std::ranges::none_of(lines, [](char c) { return static_cast<unsigned char>(c) < 0x20 and c != '\n'; }));
  EXPECT_EQ(json::parse(to_json_text(differences)).size(), differences.size());
  for (const std::string& name : hostile_names()) EXPECT_NE(trained.model->graph.find_input(name), nullptr) << quoted(name);
}

void expect_onnx_holds() {
  std::vector<std::string> notes;
  const std::string bytes = onnx_form(hostile().plan, {.stage = plan::kTrainStep}, notes);
  const onnx::Imported read = onnx::import_model(parse_model(std::as_bytes(std::span(bytes)), "step.onnx"), "step.onnx", ".");
  for (const std::string& name : hostile_names()) EXPECT_NE(read.graph.find_input(name), nullptr) << quoted(name);
  for (const plan::Persistent& persistent : hostile().plan.plan->programs[0].persistents)
    if (persistent.trained) EXPECT_NE(read.graph.find_output(onnx::kNewPrefix + persistent.name), nullptr) << quoted(persistent.name);
}

/// One test, because ctest runs each in a process of its own, and the plan takes seconds to make.
TEST(HostileNames, CannotBreakAnyForm) {
  expect_names_reach_the_graph();
  expect_hir_holds();
  expect_json_holds();
  expect_dot_holds();
  expect_svg_holds();
  expect_schedules_hold();
  expect_html_holds();
  expect_onnx_holds();
  expect_terminals_hold();
  expect_generated_code_holds();
  expect_training_holds();
}

}  // namespace
}  // namespace hone::test
