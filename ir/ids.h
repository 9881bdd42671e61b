// Strong 4-byte ids. NodeId is the node's position in the graph's topological order; ids hold for one version of one graph.
#pragma once

#include <cstdint>
#include <functional>

namespace hone {

template <typename Tag>
struct Id {
  std::uint32_t index = UINT32_MAX;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t i) : index(static_cast<std::uint32_t>(i)) {}
  constexpr bool valid() const { return index != UINT32_MAX; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using NodeId = Id<struct NodeTag>;
using ValueId = Id<struct ValueTag>;

}  // namespace hone

template <typename Tag>
struct std::hash<hone::Id<Tag>> {
  std::size_t operator()(hone::Id<Tag> id) const noexcept { return id.index; }
};
