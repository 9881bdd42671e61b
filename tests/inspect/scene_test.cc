// Pictures: everything is in them once, nothing overlaps, and other programs read them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "inspect/scene.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using Kind = SceneBox::Kind;

void expect_inside(const SceneBox& inner, const SceneBox& outer) {
  constexpr double kSlack = 0.5;
  EXPECT_GE(inner.x, outer.x - kSlack) << inner.title << " in " << outer.title;
  EXPECT_GE(inner.y, outer.y - kSlack) << inner.title << " in " << outer.title;
  EXPECT_LE(inner.x + inner.width, outer.x + outer.width + kSlack) << inner.title << " in " << outer.title;
  EXPECT_LE(inner.y + inner.height, outer.y + outer.height + kSlack) << inner.title << " in " << outer.title;
}

bool overlap(const SceneBox& a, const SceneBox& b) {
  return a.x + a.width > b.x + 0.5 and b.x + b.width > a.x + 0.5 and a.y + a.height > b.y + 0.5 and b.y + b.height > a.y + 0.5;
}

/// Boxes lie inside of those around them and beside each other; each item is there once, at its path.
void expect_sound(const Scene& scene, const std::vector<SceneItem>& items) {
  std::map<std::int32_t, std::vector<const SceneBox*>> children;
  std::map<std::uint32_t, int> seen;
  for (std::size_t i = 0; i < scene.boxes.size(); ++i) {
    const SceneBox& box = scene.boxes[i];
    ASSERT_LT(box.parent, static_cast<std::int32_t>(i));
    if (box.parent >= 0) expect_inside(box, scene.boxes[static_cast<std::size_t>(box.parent)]);
    for (const SceneBox* sibling : children[box.parent]) EXPECT_FALSE(overlap(box, *sibling)) << box.title << " and " << sibling->title;
    children[box.parent].push_back(&box);
    if (box.kind == Kind::kItem) ++seen[box.id];
  }
  EXPECT_EQ(seen.size(), items.size());
  for (const auto& [id, count] : seen) EXPECT_EQ(count, 1) << id;
}

SceneItem item(const std::string& title, std::vector<std::string> path, std::uint32_t lane, std::uint32_t id) {
  return {.title = title, .subtitle = "", .path = std::move(path), .lane = lane, .id = id};
}

TEST(Scene, PutsModulesIntoBoxes) {
  const std::vector<SceneItem> items = {item("a", {"m", "x"}, 0, 0), item("b", {"m", "x"}, 0, 1), item("c", {"m", "y"}, 0, 2), item("d", {"m", "y"}, 0, 3), item("e", {}, 1, 4)};
  const Scene scene = build_scene({{"one", "two"}, items, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}, {}});
  expect_sound(scene, items);
  std::vector<std::string> groups;
  for (const SceneBox& box : scene.boxes)
    if (box.kind == Kind::kGroup) groups.push_back(box.title);
  EXPECT_EQ(groups, (std::vector<std::string>{"m", "x", "y"}));
}

TEST(Scene, AModuleOfOneThingIsThat) {
  const std::vector<SceneItem> items = {item("a", {"m", "x", "y"}, 0, 0), item("b", {"n", "z"}, 0, 1), item("c", {"n", "z"}, 0, 2)};
  const Scene scene = build_scene({{"one"}, items, {}, {}});
  std::vector<std::string> titles;
  for (const SceneBox& box : scene.boxes)
    if (box.kind != Kind::kItem) titles.push_back(box.title);
  EXPECT_EQ(titles, (std::vector<std::string>{"one", "n/z"}));
}

/// The curve stands between the outermost boxes that hold one of the two; what the reader reads of elsewhere is named beside it.
TEST(Scene, AnEdgeBetweenModulesIsACurveAndAStub) {
  const std::vector<SceneItem> items = {item("a", {"m"}, 0, 0), item("b", {"m"}, 0, 1), item("c", {"n"}, 0, 2), item("d", {"n"}, 0, 3)};
  const Scene scene = build_scene({{"one"}, items, {{0, 1}, {1, 2}, {1, 3}}, {}});
  expect_sound(scene, items);
  std::vector<std::string> curves, stubs;
  for (const SceneCurve& curve : scene.curves) curves.push_back(scene.boxes[static_cast<std::size_t>(curve.from)].title + ">" + scene.boxes[static_cast<std::size_t>(curve.to)].title);
  for (const SceneBox& box : scene.boxes)
    if (box.kind == Kind::kStub) stubs.push_back(box.title);
  std::ranges::sort(curves);
  EXPECT_EQ(curves, (std::vector<std::string>{"a>b", "m>n", "← m/b>c", "← m/b>d"}));
  EXPECT_EQ(stubs, std::vector<std::string>{"← m/b"});
}

TEST(Scene, ManyItemsWithoutModulesBecomeRuns) {
  std::vector<SceneItem> items;
  std::vector<SceneEdge> edges;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    items.push_back(item("node", {}, 0, i));
    if (i > 0) edges.push_back({i - 1, i});
  }
  const Scene scene = build_scene({{"one"}, items, edges, {}});
  expect_sound(scene, items);
  std::map<std::int32_t, int> children;
  for (const SceneBox& box : scene.boxes) children[box.parent] += box.kind == Kind::kItem or box.kind == Kind::kGroup;
  for (const auto& [parent, count] : children) EXPECT_LE(count, 28);
}

TEST(Scene, OfNothingIsEmpty) { EXPECT_TRUE(build_scene({{"one"}, {}, {}, {}}).boxes.empty()); }

TEST(Scene, TakesCyclesOfModules) {
  const std::vector<SceneItem> items = {item("a", {"m"}, 0, 0), item("b", {"n"}, 0, 1), item("c", {"m"}, 0, 2), item("d", {"n"}, 0, 3)};
  expect_sound(build_scene({{"one"}, items, {{0, 1}, {1, 2}, {2, 3}}, {}}), items);
}

TEST(DumpSvg, IsXmlWithABoxForEachNode) {
  TempFolder folder;
  write_conv_plan(folder);
  for (const std::string file : {"conv.onnx", "conv.hone", "conv.hone --stage predict"}) {
    pugi::xml_document svg;
    const std::string text = run_well(folder.path(), "hone-dump " + file + " --as svg").out;
    ASSERT_TRUE(svg.load_string(text.c_str(), pugi::parse_full)) << file;
    const auto json = nlohmann::json::parse(run_well(folder.path(), "hone-dump " + file + " --as json").out);
    EXPECT_EQ(svg.select_nodes("//g[starts-with(@class, 'item')]").size(), json["graph"]["nodes"].size()) << file;
    EXPECT_FALSE(svg.select_nodes("//path[@class='edge']").empty());
  }
}

}  // namespace
}  // namespace hone::test
