// One kernel for several nodes: what one of them makes for another never goes through memory.
//
// The kernel's outer points are those of the group's reductions (a row of softmax, a channel of batch normalization, an element of a matrix product), its
// inner axes the ones they run over; without a reduction they are the elements of the last result. A value is written down where it is wanted, as a formula
// of the indices there, so transposes, slices, pads and broadcasts between members become index arithmetic. Each reduction is a row temporary. A concatenation of
// members' results of one shape is a store for each of them, a transpose at the end a store elsewhere.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/kernel/kernel.h"

namespace hone {

/// A node as fusion sees it.
struct NodeKernel {
  enum class Kind : std::uint8_t {
    kMap,        ///< each result element is a formula of the operands' elements; stored at its own index
    kReduction,  ///< reductions over one set of inner axes, then one store a result at the outer point's own index
    kParts,      ///< operands of one shape, copied side by side: who makes them for the group can store them there
    kOther,      ///< anything else that has a kernel (scatter), or no kernel at all: cannot be fused
  };
  Kind kind = Kind::kOther;
  Kernel kernel;  ///< kernel_of the node; empty for nodes of meaning `scalar` and for those without a kernel
};

/// The NodeKernels of a graph, each made at its first use.
class NodeKernels {
 public:
  explicit NodeKernels(const Graph& graph) : graph_(graph), kernels_(graph.node_count()) {}
  const Graph& graph() const { return graph_; }
  const NodeKernel& of(NodeId node);

 private:
  const Graph& graph_;
  std::vector<std::optional<NodeKernel>> kernels_;
};

/// What the value shows, through reshapes, which are no work.
ValueId through_reshapes(const Graph& graph, ValueId value);

struct FusedKernel {
  Kernel kernel;
  std::vector<ValueId> buffers;     ///< what each of the kernel's buffers holds
  std::vector<std::uint64_t> axes;  ///< by member: the kernel's axes that move the index at which it is worked out, as a bit set
  std::string why_not;              ///< not empty: the members cannot be one kernel, and the rest is empty
};

/// `members` are nodes of kind kMap or kReduction in graph order; `stored` are the results that are written to memory. A reshape between two members is seen
/// through where it only splits axes of what is read or touches axes of extent 1.
FusedKernel fused_kernel(NodeKernels& kernels, std::span<const NodeId> members, std::span<const ValueId> stored);

}  // namespace hone
