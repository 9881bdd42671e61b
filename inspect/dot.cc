// What a scene is made of, in the language of Graphviz.
#include <fmt/format.h>

#include <map>

#include "inspect/clean_text.h"
#include "inspect/scene.h"
#include "ir/dot.h"

namespace hone {

namespace {

/// A DOT string: only quotes and backslashes mean something in it, and what is clean is one line.
std::string dot_quoted(std::string_view text) {
  std::string safe;
  for (const char c : clean_text(text)) safe += c == '"' or c == '\\' ? std::string("\\") + c : std::string(1, c);
  return safe;
}

std::string item_line(const SceneItem& item, std::size_t number) {
  const std::string subtitle = item.subtitle.empty() ? "" : "\\n" + dot_quoted(item.subtitle);
  return fmt::format("    i{} [fillcolor=\"{}\", label=\"{}{}\"];\n", number, kPartColours[item.lane % std::size(kPartColours)], dot_quoted(item.title), subtitle);
}

}  // namespace

std::string to_dot(const ScenePieces& pieces, std::string_view title) {
  std::string text = fmt::format("digraph \"{}\" {{\n  rankdir=TB;\n  node [shape=box, style=filled, fontname=\"Helvetica\", fontsize=10];\n  edge [fontname=\"Helvetica\", fontsize=8];\n", dot_quoted(title));
  for (std::uint32_t lane = 0; lane < pieces.lanes.size(); ++lane) {
    std::string items;
    for (std::size_t i = 0; i < pieces.items.size(); ++i)
      if (pieces.items[i].lane == lane) items += item_line(pieces.items[i], i);
    if (not items.empty()) text += fmt::format("  subgraph \"cluster_{}\" {{\n    label=\"{}\";\n{}  }}\n", lane, dot_quoted(pieces.lanes[lane]), items);
  }
  std::map<std::uint32_t, std::string> sources;
  for (const SceneSource& source : pieces.sources) sources.try_emplace(source.id, source.title);
  for (const auto& [id, name] : sources) text += fmt::format("  s{} [style=\"rounded,filled\", fillcolor=\"#e5e7eb\", label=\"{}\"];\n", id, dot_quoted(name));
  for (const SceneEdge& edge : pieces.edges) text += fmt::format("  i{} -> i{};\n", edge.from, edge.to);
  for (const SceneSource& source : pieces.sources) text += fmt::format("  s{} -> i{};\n", source.id, source.to);
  return text + "}\n";
}

}  // namespace hone
