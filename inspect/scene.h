// A picture of a graph that may be large: boxes inside boxes. Each module of the model is a box around its parts, laid out on its own, so that a graph of ten thousand nodes is some hundred
// small pictures, and a module looks the same whatever lies around it. What is in one lane (forward, backward, ...) is one picture; lanes lie below each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/describe.h"
#include "inspect/layout.h"

namespace hone {

/// What a picture is made of: a node of a graph, or a step of a schedule.
struct SceneItem {
  std::string title, subtitle;
  std::vector<std::string> path;  ///< modules around it, outermost first
  std::uint32_t lane = 0;
  std::uint32_t id = 0;           ///< whose it is, for the reader
};
struct SceneEdge {
  std::uint32_t from = 0, to = 0;  ///< items
};
/// What an item reads that no item makes: a small box beside it, one for all readers in a module.
struct SceneSource {
  std::string title;
  std::uint32_t id = 0;  ///< the same for the same thing
  std::uint32_t to = 0;  ///< the item that reads it
};

struct ScenePieces {
  std::vector<std::string> lanes;  ///< their names, from the top
  std::vector<SceneItem> items;
  std::vector<SceneEdge> edges;
  std::vector<SceneSource> sources;
};

struct SceneBox {
  enum class Kind : std::uint8_t {
    kLane,
    kGroup,   ///< a module, or a run of items where there are many
    kItem,
    kSource,
    kStub,    ///< an item elsewhere that something here reads
  };
  Kind kind = Kind::kItem;
  double x = 0, y = 0, width = 0, height = 0;  ///< the upper left corner, in the scene
  std::int32_t parent = -1;                    ///< the box around it; parents stand before what is in them
  std::uint32_t lane = 0;
  std::uint32_t id = 0;  ///< of the item (kItem, kStub) or the source
  std::string title, subtitle;
};
struct SceneCurve {
  std::int32_t from = -1, to = -1;  ///< boxes
  std::vector<LayoutPoint> points;  ///< as Layout::curves
};
struct Scene {
  double width = 0, height = 0;
  std::vector<SceneBox> boxes;
  std::vector<SceneCurve> curves;
};

/// Lanes without items are left out.
Scene build_scene(const ScenePieces& pieces);

/// The nodes of a described graph, in lanes by part.
ScenePieces pieces_of_graph(const Json& graph);
/// The steps of a described entry, in lanes by part; `graph` is the one whose nodes they name.
ScenePieces pieces_of_schedule(const Json& entry, const Json& graph);

/// In the language of Graphviz: a box an item, a cluster a lane.
std::string to_dot(const ScenePieces& pieces, std::string_view title);
/// As a standalone SVG picture.
std::string to_svg(const Scene& scene, std::string_view title);
/// As the page reads it.
Json to_json(const Scene& scene);

}  // namespace hone
