#include "inspect/layout.h"

#include <fmt/format.h>
#include <graphviz/gvc.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <mutex>
#include <string>

#include "base/check.h"

namespace hone {

namespace {

constexpr double kPointsPerInch = 72;

struct ContextDeleter {
  void operator()(GVC_t* context) const { gvFreeContext(context); }
};

/// The numbers of a text, whatever else stands between them.
std::vector<double> numbers_in(const char* text) {
  std::vector<double> numbers;
  const std::string_view all = text == nullptr ? "" : text;
  const char* end = all.data() + all.size();
  for (const char* at = all.data(); at < end;) {
    double number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc()) numbers.push_back(number), at = next;
    else ++at;
  }
  return numbers;
}

class Drawing {
 public:
  Drawing(GVC_t* context, const std::vector<LayoutBox>& boxes, const std::vector<LayoutEdge>& edges, Direction direction) : context_(context) {
    graph_ = agopen(const_cast<char*>("g"), Agdirected, nullptr);
    HONE_CHECK(graph_ != nullptr, "Graphviz makes no graph");
    set(graph_, "rankdir", direction == Direction::kRight ? "LR" : "TB");
    set(graph_, "ranksep", "0.35"), set(graph_, "nodesep", "0.18");
    set(graph_, "splines", edges.size() < 250 ? "true" : "line");
    set(graph_, "nslimit", "3"), set(graph_, "nslimit1", "3"), set(graph_, "mclimit", "0.5");
    constexpr std::size_t kFew = 12;
    if (boxes.size() > kFew) set(graph_, "pack", "12"), set(graph_, "packmode", "graph");  // what is not connected lies compactly, not in one row
    default_of(AGNODE, "label", ""), default_of(AGNODE, "shape", "box"), default_of(AGNODE, "fixedsize", "true"), default_of(AGNODE, "width", "1"), default_of(AGNODE, "height", "1");
    default_of(AGNODE, "pos", ""), default_of(AGEDGE, "pos", ""), default_of(AGEDGE, "dir", "none");
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      Agnode_t* node = agnode(graph_, fmt::format("n{}", i).data(), 1);
      set(node, "width", fmt::format("{:.4f}", boxes[i].width / kPointsPerInch));
      set(node, "height", fmt::format("{:.4f}", boxes[i].height / kPointsPerInch));
      nodes_.push_back(node);
    }
    for (std::size_t i = 0; i < edges.size(); ++i)
      edges_.push_back(edges[i].from == edges[i].to ? nullptr : agedge(graph_, nodes_.at(edges[i].from), nodes_.at(edges[i].to), fmt::format("e{}", i).data(), 1));
  }
  Drawing(const Drawing&) = delete;
  Drawing& operator=(const Drawing&) = delete;
  ~Drawing() { agclose(graph_); }

  Layout run() {
    HONE_CHECK(gvLayout(context_, graph_, "dot") == 0, "Graphviz finds no layout");
    attach_attrs(graph_);
    Layout layout;
    const std::vector<double> box = numbers_in(agget(graph_, const_cast<char*>("bb")));
    if (box.size() == 4) layout.width = box[2] - box[0], layout.height = box[3] - box[1];
    const auto point = [&](double x, double y) { return LayoutPoint{x, layout.height - y}; };
    for (Agnode_t* node : nodes_) {
      const std::vector<double> at = numbers_in(agget(node, const_cast<char*>("pos")));
      layout.centers.push_back(at.size() == 2 ? point(at[0], at[1]) : LayoutPoint{});
    }
    for (Agedge_t* edge : edges_) {
      std::vector<LayoutPoint>& curve = layout.curves.emplace_back();
      const std::vector<double> at = edge == nullptr ? std::vector<double>{} : numbers_in(agget(edge, const_cast<char*>("pos")));
      for (std::size_t k = 0; k + 1 < at.size(); k += 2) curve.push_back(point(at[k], at[k + 1]));
      if (curve.size() % 3 != 1) curve.clear();
    }
    gvFreeLayout(context_, graph_);
    return layout;
  }

 private:
  void default_of(int kind, const char* name, const char* value) { agattr(graph_, kind, const_cast<char*>(name), const_cast<char*>(value)); }
  static void set(void* object, const char* name, std::string value) { agsafeset(object, const_cast<char*>(name), value.data(), const_cast<char*>("")); }

  GVC_t* context_;
  Agraph_t* graph_ = nullptr;
  std::vector<Agnode_t*> nodes_;
  std::vector<Agedge_t*> edges_;
};

}  // namespace

Layout lay_out(const std::vector<LayoutBox>& boxes, const std::vector<LayoutEdge>& edges, Direction direction) {
  if (boxes.empty()) return {};
  static std::mutex mutex;  // Graphviz keeps its state in globals
  const std::lock_guard lock(mutex);
  static const std::unique_ptr<GVC_t, ContextDeleter> context(gvContext());
  return Drawing(context.get(), boxes, edges, direction).run();
}

}  // namespace hone
