// Scenes as SVG and as JSON.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "inspect/clean_text.h"
#include "inspect/scene.h"

namespace hone {

namespace {

constexpr std::string_view kBoxKinds[] = {"lane", "group", "item", "source", "stub"};

constexpr std::string_view kStyle = R"(
  svg { background: #fbfbfa; font-family: "Inter", "Helvetica Neue", Helvetica, Arial, sans-serif; font-size: 11px; }
  text { fill: #26282c; }
  .small { font-size: 9.5px; fill: #6b7078; font-family: "SFMono-Regular", Menlo, Consolas, monospace; }
  .lane > rect { fill: #f1f1ef; stroke: none; }
  .lane > text { font-size: 20px; font-weight: 600; fill: #8a8f98; }
  .group > rect { fill: #ffffff; fill-opacity: .75; stroke: #d9dbdf; }
  .group > text { font-size: 11px; font-weight: 600; fill: #6b7078; }
  .item > rect { stroke-width: 1; }
  .l0 > rect { fill: #dfeaf7; stroke: #8fb3dc; } .l1 > rect { fill: #f6e6c4; stroke: #d6ab4c; } .l2 > rect { fill: #f6dfe3; stroke: #d9919e; }
  .l3 > rect { fill: #e5e0f4; stroke: #a796d6; } .l4 > rect { fill: #dceedd; stroke: #8dbd91; }
  .source > rect, .stub > rect { fill: #ffffff; stroke: #c9ccd1; }
  .source > text, .stub > text { font-size: 9.5px; fill: #6b7078; }
  .stub > rect { stroke-dasharray: 3 2; }
  .edge { fill: none; stroke: #a7abb3; stroke-width: 1; }
  .head { fill: #a7abb3; }
  @media (prefers-color-scheme: dark) {
    svg { background: #17181a; } text { fill: #e6e7e9; } .small, .source > text, .stub > text, .group > text { fill: #9a9fa8; }
    .lane > rect { fill: #1e2023; } .group > rect { fill: #25272b; stroke: #3a3d43; }
    .l0 > rect { fill: #22364d; stroke: #4a7099; } .l1 > rect { fill: #453813; stroke: #8f7426; } .l2 > rect { fill: #4a2830; stroke: #96566a; }
    .l3 > rect { fill: #352e52; stroke: #7162a6; } .l4 > rect { fill: #22402a; stroke: #4f8059; }
    .source > rect, .stub > rect { fill: #1c1d20; stroke: #4a4d54; } .edge { stroke: #62666e; } .head { fill: #62666e; }
  }
)";

std::string box_element(const SceneBox& box) {
  const std::string_view kind = kBoxKinds[static_cast<std::size_t>(box.kind)];
  const bool is_item = box.kind == SceneBox::Kind::kItem, is_lane = box.kind == SceneBox::Kind::kLane, is_group = box.kind == SceneBox::Kind::kGroup;
  const double radius = is_item ? 4 : is_lane or is_group ? 8 : box.height / 2;
  std::string text = fmt::format(R"(<g class="{}{}"><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{:.1f}"/>)", kind, is_item ? fmt::format(" l{}", box.lane) : "", box.x, box.y, box.width,
                                 box.height, radius);
  if (is_lane or is_group) {
    text += fmt::format(R"(<text x="{:.1f}" y="{:.1f}">{}</text>)", box.x + (is_lane ? 20 : 10), box.y + (is_lane ? 28 : 14), markup_text(box.title));
  } else {
    const double middle = box.x + box.width / 2;
    text += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)", middle, box.y + (box.subtitle.empty() ? box.height / 2 + 4 : 15), markup_text(box.title));
    if (not box.subtitle.empty()) text += fmt::format(R"(<text class="small" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)", middle, box.y + 29, markup_text(box.subtitle));
  }
  return text + "</g>\n";
}

std::string curve_element(const SceneCurve& curve) {
  const auto& points = curve.points;
  std::string path = fmt::format("M{:.1f},{:.1f}C", points[0].x, points[0].y);
  for (std::size_t i = 1; i < points.size(); ++i) path += fmt::format("{}{:.1f},{:.1f}", i == 1 ? "" : " ", points[i].x, points[i].y);
  const LayoutPoint end = points.back(), before = points[points.size() - 2];
  const double dx = end.x - before.x, dy = end.y - before.y, length = std::max(1e-6, std::hypot(dx, dy)), ux = dx / length, uy = dy / length;
  const std::string head = fmt::format("M{:.1f},{:.1f}L{:.1f},{:.1f}L{:.1f},{:.1f}Z", end.x, end.y, end.x - 6 * ux - 2.6 * uy, end.y - 6 * uy + 2.6 * ux, end.x - 6 * ux + 2.6 * uy, end.y - 6 * uy - 2.6 * ux);
  return fmt::format("<path class=\"edge\" d=\"{}\"/><path class=\"head\" d=\"{}\"/>\n", path, head);
}

}  // namespace

std::string to_svg(const Scene& scene, std::string_view title) {
  constexpr double kMargin = 20;
  const double width = scene.width + 2 * kMargin, height = scene.height + 2 * kMargin;
  std::string text = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{:.1f} {:.1f} {:.1f} {:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\">\n<title>{}</title>\n<style>{}</style>\n",
                                 -kMargin, -kMargin, width, height, width, height, markup_text(title), kStyle);
  for (const SceneBox& box : scene.boxes) text += box_element(box);
  for (const SceneCurve& curve : scene.curves)
    if (curve.points.size() >= 4) text += curve_element(curve);
  return text + "</svg>\n";
}

Json to_json(const Scene& scene) {
  const auto rounded = [](double number) { return std::round(number * 10) / 10; };
  Json json = {{"width", rounded(scene.width)}, {"height", rounded(scene.height)}, {"boxes", Json::array()}, {"curves", Json::array()}};
  for (const SceneBox& box : scene.boxes)
    json["boxes"].push_back({kBoxKinds[static_cast<std::size_t>(box.kind)], rounded(box.x), rounded(box.y), rounded(box.width), rounded(box.height), box.parent, box.lane, box.id, box.title, box.subtitle});
  for (const SceneCurve& curve : scene.curves) {
    Json points = {curve.from, curve.to};
    for (const LayoutPoint& point : curve.points) points.push_back(rounded(point.x)), points.push_back(rounded(point.y));
    json["curves"].push_back(std::move(points));
  }
  return json;
}

}  // namespace hone
