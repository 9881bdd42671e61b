// The rows cudnn.attention and cudnn.attention_grad: attention as the graph of operations in which cuDNN 9 knows it, and its calls. All but the calls themselves goes without a GPU, if one is described.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/choices.h"
#include "runtime/device/cudnn_plan.h"
#include "runtime/library/attention.h"

namespace hone::cudnn {

/// By which the calls' pack names the tensors. The numbers are read from the host, and `shared` (of the backward pass, sums over dy * y) lies in the call's scratch.
enum class AttentionTensor : std::int64_t { kQuery = 1, kKey, kValue, kY, kStatistics, kBias, kDy, kQueryGradient, kKeyGradient, kValueGradient, kScale, kLowest, kShared, kOne };

/// Attention, or its gradient, over some of a call's batches.
struct AttentionPart {
  bool gradient = false;
  DType dtype = DType::kBF16;
  AttentionCase sizes;
};

/// The operations that the library is asked for. Throws Refused.
class AttentionGraph {
 public:
  AttentionGraph(const Library& library, const AttentionPart& part);
  const Descriptor& graph() const { return graph_; }

 private:
  friend class AttentionMaker;
  std::deque<Descriptor> parts_;  // which the graph names
  Descriptor graph_;
};

/// A call as equal parts one after the other, each with a plan's scratch.
struct AttentionParts {
  AttentionPart part;
  std::int64_t count = 1;
};
/// As few as need no more than `most_scratch` by what engines are known to take. The same bits every time cost the gradient a matrix of the scores' size; where there is no room for all of it, it is that of some
/// batches or heads. At least one batch or head is in a part, whatever that takes.
AttentionParts parts_of(const LibraryRow& row, const LibrarySpec& spec, std::size_t most_scratch);
/// Bytes of scratch beside the plan's, in front of it.
std::size_t shared_bytes(const AttentionPart& part);

/// As make_convolutions (cudnn_conv.h).
std::vector<Candidate> make_attention(const Library& library, Handle handle, const Descriptor& device, const LibraryRow& row, const LibrarySpec& spec, const cuda::UseStream& use, std::size_t most, std::string* why_not);

}  // namespace hone::cudnn
