#include "backends/fuse.h"

#include <algorithm>

#include "ir/op.h"

namespace hone {

namespace {

constexpr std::size_t kMostMembers = 48;  // longer kernels run out of registers and gain nothing

class Fuser {
 public:
  explicit Fuser(const Graph& graph) : graph_(graph), first_outside_reader_(graph.node_count(), graph.node_count()) {}

  Fusion run() {
    for (std::size_t i = 0; i < graph_.node_count(); ++i) {
      const NodeId id(i);
      const std::uint32_t group = can_fuse(id) ? find_group(id) : kNone;
      fusion_.group_of.push_back(group == kNone ? static_cast<std::uint32_t>(fusion_.groups.size()) : group);
      if (group == kNone) fusion_.groups.emplace_back();
      fusion_.groups[fusion_.group_of.back()].push_back(id);
      note_reads(id);
    }
    return std::move(fusion_);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  bool can_fuse(NodeId id) const { return graph_.node(id).op->scalar != nullptr; }

  /// From now on the groups that `id` reads from, and is not a member of, cannot grow: their end would come after this reader.
  void note_reads(NodeId id) {
    for (const ValueId operand : graph_.node(id).operands) {
      if (not operand.valid() or not graph_.value(operand).producer.valid()) continue;
      const std::uint32_t group = fusion_.group_of[graph_.value(operand).producer.index];
      if (group != fusion_.group_of[id.index]) first_outside_reader_[group] = std::min(first_outside_reader_[group], static_cast<std::size_t>(id.index));
    }
  }

  bool may_join(NodeId id, std::uint32_t group) const {
    const std::vector<NodeId>& members = fusion_.groups[group];
    return can_fuse(members.front()) and members.size() < kMostMembers and first_outside_reader_[group] == graph_.node_count() and
           graph_.type(graph_.node(members.front()).results[0]).shape == graph_.type(graph_.node(id).results[0]).shape;
  }

  /// The latest group that `id` reads from and may join.
  std::uint32_t find_group(NodeId id) const {
    std::uint32_t best = kNone;
    for (const ValueId operand : graph_.node(id).operands) {
      if (not operand.valid() or not graph_.value(operand).producer.valid()) continue;
      const std::uint32_t group = fusion_.group_of[graph_.value(operand).producer.index];
      if (may_join(id, group) and (best == kNone or fusion_.groups[group].back() > fusion_.groups[best].back())) best = group;
    }
    return best;
  }

  const Graph& graph_;
  Fusion fusion_;
  std::vector<std::size_t> first_outside_reader_;  // by group
};

}  // namespace

Fusion fuse_elementwise(const Graph& graph) { return Fuser(graph).run(); }

}  // namespace hone
