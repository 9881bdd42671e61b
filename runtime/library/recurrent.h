// The rows cudnn.recurrent and cudnn.recurrent_grad: what their attributes and sizes say, and how the host plays them for tests.
#pragma once

#include "base/recurrent_cell.h"
#include "runtime/library/rows.h"

namespace hone {

/// A layer over x [steps,samples,features].
struct RecurrentCase {
  RecurrentCell cell = RecurrentCell::kTanh;
  std::vector<std::int64_t> gates;  ///< the place of each gate among the rows of the weights
  std::int64_t steps = 0, samples = 0, features = 0, hidden = 0;
  bool tf32 = false;                ///< factors may be TF32
};
/// Of a call of either row that LibraryRow::why_not() says nothing of.
RecurrentCase recurrent_of(const LibrarySpec& spec);

/// What both rows read first; the states before the first step follow in a forward call, dy and then those in the gradient's, and then the gradients of the last states.
enum RecurrentOperand : std::uint8_t { kRecurrentX, kRecurrentW, kRecurrentR, kRecurrentBias, kRecurrentStateBias, kRecurrentWeights };

/// What cuDNN takes of memory, in bytes: for all weights, while it works, and for what it keeps of a forward pass for the way back.
struct RecurrentNeeds {
  std::size_t weights = 0, work = 0, kept = 0;
};
/// More than it is known to take.
RecurrentNeeds most_needs(const RecurrentCase& of);
/// The pieces of a call's scratch, of which each begins at a multiple of this.
inline constexpr std::size_t kRecurrentAlignment = 256;
/// Scratch of a forward call, and of the gradient's.
std::size_t recurrent_scratch(const RecurrentCase& of, const RecurrentNeeds& needs);
std::size_t recurrent_gradient_scratch(const RecurrentCase& of, const RecurrentNeeds& needs);

std::unique_ptr<LibraryCall> create_recurrent(const LibrarySpec& spec);
std::unique_ptr<LibraryCall> create_recurrent_gradient(const LibrarySpec& spec);

}  // namespace hone
