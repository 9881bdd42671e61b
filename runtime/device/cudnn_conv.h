// The rows cudnn.conv, cudnn.conv_input_grad and cudnn.conv_weight_grad: what a convolution is to cuDNN, and its call. All but the call itself goes without a GPU, if one is described.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/choices.h"
#include "runtime/device/cudnn_plan.h"

namespace hone::cudnn {

/// A convolution seen from the forward direction, whichever of its three tensors a row computes.
struct Convolution {
  Kind pass = Kind::kForward;  ///< or kInputGradient, kWeightGradient
  TensorLayout x, weight, y;  ///< [N,C,s..], [O,C/groups,k..] of at least two spatial axes
  std::vector<std::int64_t> strides, dilations, pads_begin, pads_end;
  bool tf32 = false;  ///< f32 factors may be TF32
};
Convolution convolution_of(const LibraryRow& row, const LibrarySpec& spec);

/// The operations that the library is asked for. Throws Refused.
class OperationGraph {
 public:
  OperationGraph(const Library& library, const Convolution& convolution);
  const Descriptor& graph() const { return graph_; }

 private:
  std::vector<Descriptor> parts_;  // which the graph names
  Descriptor graph_;
};

/// As for any graph (cudnn_plan.h). Throws Refused if there is none. The graph outlives them.
std::vector<Plan> choose_plans(const Library& library, const OperationGraph& graph, const Descriptor& device, const Convolution& convolution, std::size_t most_scratch, std::size_t most);

/// The best recommended first, at most so many. None if the library does not do that with so little scratch (device_scratch()), and *why_not (which may be null). Library, handle, `device` and what `use` needs outlive them.
std::vector<Candidate> make_convolutions(const Library& library, Handle handle, const Descriptor& device, const LibraryRow& row, const LibrarySpec& spec, const cuda::UseStream& use, std::size_t most, std::string* why_not);

}  // namespace hone::cudnn
