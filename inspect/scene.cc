#include "inspect/scene.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace hone {

namespace {

constexpr double kCharacter = 6.4, kLine = 15, kPadding = 10, kTitle = 20, kLaneGap = 60, kLaneTitle = 40;
constexpr std::size_t kMostChildren = 28;   // of one box: more are put into runs
constexpr std::size_t kLongestTitle = 30;

/// A title that fits into a box: at most so many characters, not bytes.
std::string cut(const std::string& text) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 and ++characters > kLongestTitle) return text.substr(0, i) + "…";
  return text;
}

double width_of(const std::string& title, const std::string& subtitle) {
  const auto characters = [](const std::string& text) { return static_cast<double>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; })); };
  return std::max(characters(title) * kCharacter * 1.08, characters(subtitle) * kCharacter) + 2 * kPadding;
}

/// A box before it is placed; its children are boxes of the same list.
struct Tree {
  SceneBox box;
  std::vector<std::uint32_t> children;
  std::int32_t parent = -1;
  std::vector<LayoutEdge> edges;  ///< between children
};

class SceneBuilder {
 public:
  explicit SceneBuilder(const ScenePieces& pieces) : items_(pieces.items), tree_of_item_(pieces.items.size()) {
    for (const std::string& lane : pieces.lanes) lanes_.push_back(add({.kind = SceneBox::Kind::kLane, .lane = static_cast<std::uint32_t>(lanes_.size()), .title = lane}, -1));
    for (std::uint32_t i = 0; i < items_.size(); ++i) place_item(i);
    for (const std::uint32_t lane : lanes_) simplify(lane);
    for (const SceneEdge& edge : pieces.edges) connect(edge);
    for (const SceneSource& source : pieces.sources) connect(source);
  }

  Scene run() {
    Scene scene;
    double y = 0;
    for (const std::uint32_t lane : lanes_) {
      if (trees_[lane].children.empty()) continue;
      lay_out_children(lane, Direction::kRight);
      trees_[lane].box.y = y;
      y += trees_[lane].box.height + kLaneGap;
      scene.width = std::max(scene.width, trees_[lane].box.width);
      append(scene, lane, -1, {0, trees_[lane].box.y});
    }
    scene.height = std::max(0.0, y - kLaneGap);
    for (SceneBox& box : scene.boxes)
      if (box.kind == SceneBox::Kind::kLane) box.width = scene.width;
    return scene;
  }

 private:
  std::uint32_t add(SceneBox box, std::int32_t parent) {
    trees_.push_back({.box = std::move(box), .children = {}, .parent = parent, .edges = {}});
    const auto number = static_cast<std::uint32_t>(trees_.size() - 1);
    if (parent >= 0) trees_[static_cast<std::size_t>(parent)].children.push_back(number);
    return number;
  }

  std::uint32_t group(std::uint32_t parent, const std::string& name) {
    const auto [found, is_new] = groups_.try_emplace({parent, name}, 0);
    if (is_new) found->second = add({.kind = SceneBox::Kind::kGroup, .lane = trees_[parent].box.lane, .title = name}, static_cast<std::int32_t>(parent));
    return found->second;
  }

  void place_item(std::uint32_t number) {
    const SceneItem& item = items_[number];
    std::uint32_t parent = lanes_.at(item.lane);
    for (const std::string& name : item.path) parent = group(parent, name);
    SceneBox box{.kind = SceneBox::Kind::kItem, .lane = item.lane, .id = item.id, .title = cut(item.title), .subtitle = cut(item.subtitle)};
    box.width = width_of(box.title, box.subtitle);
    box.height = box.subtitle.empty() ? kLine + 8 : 2 * kLine + 6;
    tree_of_item_[number] = add(std::move(box), static_cast<std::int32_t>(parent));
  }

  /// A group with one child is that child, with both names; many children become runs of neighbours.
  void simplify(std::uint32_t number) {  // as deep as module paths are, which describe.h limits
    for (std::size_t i = 0; i < trees_[number].children.size(); ++i) {
      std::uint32_t child = trees_[number].children[i];
      simplify(child);
      while (trees_[child].box.kind == SceneBox::Kind::kGroup and trees_[child].children.size() == 1) {
        const std::uint32_t only = trees_[child].children[0];
        if (trees_[only].box.kind == SceneBox::Kind::kGroup) trees_[only].box.title = trees_[child].box.title + "/" + trees_[only].box.title;
        trees_[child].children.clear();
        trees_[only].parent = static_cast<std::int32_t>(number);
        child = trees_[number].children[i] = only;
      }
    }
    while (trees_[number].children.size() > kMostChildren) put_into_runs(number);
  }

  void put_into_runs(std::uint32_t number) {
    const std::vector<std::uint32_t> all = std::move(trees_[number].children);
    trees_[number].children.clear();
    const std::size_t runs = std::min(kMostChildren, (all.size() + kMostChildren - 1) / kMostChildren);
    for (std::size_t r = 0; r < runs; ++r) {
      const std::size_t begin = all.size() * r / runs, end = all.size() * (r + 1) / runs;
      const std::uint32_t run = add({.kind = SceneBox::Kind::kGroup, .lane = trees_[number].box.lane, .title = cut(trees_[all[begin]].box.title) + " … " + cut(trees_[all[end - 1]].box.title)}, static_cast<std::int32_t>(number));
      for (std::size_t i = begin; i < end; ++i) trees_[all[i]].parent = static_cast<std::int32_t>(run);
      trees_[run].children.assign(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
      while (trees_[run].children.size() > kMostChildren) put_into_runs(run);
    }
  }

  std::vector<std::uint32_t> ancestors(std::uint32_t number) const {  // outermost first, itself last
    std::vector<std::uint32_t> list = {number};
    while (trees_[list.back()].parent >= 0) list.push_back(static_cast<std::uint32_t>(trees_[list.back()].parent));
    std::ranges::reverse(list);
    return list;
  }

  void add_edge(std::uint32_t parent, std::uint32_t from, std::uint32_t to) {
    if (from != to and drawn_.insert({from, to}).second) trees_[parent].edges.push_back({from, to});
  }

  /// Between the outermost boxes that the two do not share; and, where these are not the two themselves, a stub beside the reader.
  void connect(const SceneEdge& edge) {
    const std::uint32_t from = tree_of_item_[edge.from], to = tree_of_item_[edge.to];
    const std::vector<std::uint32_t> a = ancestors(from), b = ancestors(to);
    std::size_t depth = 0;
    while (depth < a.size() and depth < b.size() and a[depth] == b[depth]) ++depth;
    if (depth > 0) add_edge(a[depth - 1], a[depth], b[depth]);
    if (depth > 0 and b[depth] == to) return;
    add_beside(to, SceneBox::Kind::kStub, items_[edge.from].id, edge.from, "← " + (items_[edge.from].path.empty() ? "" : items_[edge.from].path.back() + "/") + items_[edge.from].title, items_[edge.from].lane);
  }

  void connect(const SceneSource& source) { add_beside(tree_of_item_[source.to], SceneBox::Kind::kSource, source.id, source.id, source.title, items_[source.to].lane); }

  void add_beside(std::uint32_t reader, SceneBox::Kind kind, std::uint32_t id, std::uint32_t key, const std::string& title, std::uint32_t lane) {
    const auto parent = static_cast<std::uint32_t>(trees_[reader].parent);
    const auto [found, is_new] = beside_.try_emplace({parent, static_cast<int>(kind), key}, 0);
    if (is_new) {
      SceneBox box{.kind = kind, .lane = lane, .id = id, .title = cut(title)};
      box.width = width_of(box.title, "") - 4;
      box.height = kLine + 4;
      found->second = add(std::move(box), static_cast<std::int32_t>(parent));
    }
    add_edge(parent, found->second, reader);
  }

  /// The box's size follows from its children's. Directions take turns, so that a long chain of modules does not become a long line.
  void lay_out_children(std::uint32_t number, Direction direction) {  // as deep as simplify()
    std::vector<LayoutBox> boxes;
    for (const std::uint32_t child : trees_[number].children) {
      if (trees_[child].box.kind == SceneBox::Kind::kGroup) lay_out_children(child, direction == Direction::kRight ? Direction::kDown : Direction::kRight);
      boxes.push_back({trees_[child].box.width, trees_[child].box.height});
    }
    std::map<std::uint32_t, std::uint32_t> place;
    for (std::uint32_t i = 0; i < trees_[number].children.size(); ++i) place[trees_[number].children[i]] = i;
    std::vector<LayoutEdge> edges;
    for (const LayoutEdge& edge : trees_[number].edges) edges.push_back({place.at(edge.from), place.at(edge.to)});
    const Layout layout = lay_out(boxes, edges, direction);
    Tree& tree = trees_[number];
    const bool is_lane = tree.box.kind == SceneBox::Kind::kLane;
    const double title = is_lane ? kLaneTitle : kTitle, padding = is_lane ? 2 * kPadding : kPadding;
    tree.box.title = is_lane ? tree.box.title : cut(tree.box.title);
    tree.box.width = std::max(layout.width, width_of(tree.box.title, "") - 2 * kPadding) + 2 * padding;
    tree.box.height = layout.height + title + padding;
    for (std::size_t i = 0; i < tree.children.size(); ++i) {
      SceneBox& child = trees_[tree.children[i]].box;
      child.x = padding + layout.centers[i].x - child.width / 2;
      child.y = title + layout.centers[i].y - child.height / 2;
    }
    curves_[number] = layout.curves;
    for (std::vector<LayoutPoint>& curve : curves_[number])
      for (LayoutPoint& point : curve) point.x += padding, point.y += title;
  }

  /// The box and all in it, at their places in the scene.
  void append(Scene& scene, std::uint32_t number, std::int32_t parent, LayoutPoint at) {
    Tree& tree = trees_[number];
    const auto index = static_cast<std::int32_t>(scene.boxes.size());
    place_of_[number] = index;
    tree.box.x = at.x, tree.box.y = at.y, tree.box.parent = parent;
    scene.boxes.push_back(tree.box);
    for (const std::uint32_t child : tree.children) append(scene, child, index, {at.x + trees_[child].box.x, at.y + trees_[child].box.y});
    for (std::size_t i = 0; i < tree.edges.size(); ++i) {
      SceneCurve curve{place_of_.at(tree.edges[i].from), place_of_.at(tree.edges[i].to), {}};
      for (const LayoutPoint& point : curves_[number][i]) curve.points.push_back({at.x + point.x, at.y + point.y});
      scene.curves.push_back(std::move(curve));
    }
  }

  const std::vector<SceneItem>& items_;
  std::vector<Tree> trees_;
  std::vector<std::uint32_t> lanes_;
  std::vector<std::uint32_t> tree_of_item_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> groups_;
  std::map<std::tuple<std::uint32_t, int, std::uint32_t>, std::uint32_t> beside_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> drawn_;
  std::map<std::uint32_t, std::vector<std::vector<LayoutPoint>>> curves_;
  std::map<std::uint32_t, std::int32_t> place_of_;
};

}  // namespace

Scene build_scene(const ScenePieces& pieces) { return SceneBuilder(pieces).run(); }

}  // namespace hone
