// Where boxes and curves of a picture lie. Graphviz (libgvc) decides; it is given sizes alone, so no name can do harm.
#pragma once

#include <cstdint>
#include <vector>

namespace hone {

struct LayoutPoint {
  double x = 0, y = 0;
};

struct LayoutBox {
  double width = 0, height = 0;
};
struct LayoutEdge {
  std::uint32_t from = 0, to = 0;  ///< boxes
};

struct Layout {
  double width = 0, height = 0;
  std::vector<LayoutPoint> centers;              ///< by box; y grows downwards
  std::vector<std::vector<LayoutPoint>> curves;  ///< by edge: a start and three control points for each cubic Bezier piece; empty where there is none
};

enum class Direction : std::uint8_t { kRight, kDown };

/// A layered layout of a directed graph; cycles are allowed, and edges to oneself have no curve. Units are points. Deterministic. Meant for up to some hundreds of boxes: time grows faster than their number.
Layout lay_out(const std::vector<LayoutBox>& boxes, const std::vector<LayoutEdge>& edges, Direction direction);

}  // namespace hone
