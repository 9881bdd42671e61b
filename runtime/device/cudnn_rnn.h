// The rows cudnn.recurrent and cudnn.recurrent_grad: recurrent layers as cuDNN's own functions for them take them, and their calls. What is asked of the library before a call needs its handle, and so a GPU.
#pragma once

#include <string>
#include <vector>

#include "runtime/device/choices.h"
#include "runtime/device/cuda_stream.h"
#include "runtime/device/cudnn.h"
#include "runtime/library/recurrent.h"

namespace hone::cudnn {

/// Something of the library's that is created and destroyed.
template <typename Raw, Status (*Library::*Create)(Raw*), Status (*Library::*Destroy)(Raw)>
class Owned {
 public:
  explicit Owned(const Library& library) : library_(library) { check(library, (library.*Create)(&raw_), "a descriptor's creation"); }
  ~Owned() {
    if (raw_ != nullptr) (void)(library_.*Destroy)(raw_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Raw raw() const { return raw_; }

 private:
  const Library& library_;
  Raw raw_ = nullptr;
};
using Rnn = Owned<RawRnn, &Library::rnn_create, &Library::rnn_destroy>;
using RnnData = Owned<RawRnnData, &Library::rnn_data_create, &Library::rnn_data_destroy>;
using Tensor = Owned<RawTensor, &Library::tensor_create, &Library::tensor_destroy>;

/// What the library is told of a layer, of which it has several ways (cudnnRNNAlgo_t); without a handle. All functions throw Refused.
class RnnDescriptors {
 public:
  RnnDescriptors(const Library& library, const RecurrentCase& of, int algorithm = kStandardAlgorithm);

  RawRnn rnn() const { return rnn_.raw(); }
  RawRnnData x() const { return x_.raw(); }
  RawRnnData y() const { return y_.raw(); }
  RawTensor state() const { return state_.raw(); }

 private:
  Rnn rnn_;
  RnnData x_, y_;
  Tensor state_;
};

/// A piece of an operand, or of its gradient, and where it lies in the library's space for all weights.
struct WeightPiece {
  std::size_t operand;  ///< RecurrentOperand
  std::size_t from, to, bytes;
};
/// Each gate's matrices and biases; pieces that follow each other on both sides are one. Gates are found where the library says that they are.
std::vector<WeightPiece> weight_pieces(const Library& library, Handle handle, const RnnDescriptors& layer, const RecurrentCase& of);

/// The ways to make the call: by a product for each step, or with the states' weights in one kernel's registers and shared memory for all steps, which takes layers of some sizes only. None if the library does not take
/// the sizes, or more scratch than the row's; why_not, which may be null, is empty before, and then says why of the first that it refused.
std::vector<Candidate> make_recurrent(const Library& library, Handle handle, const LibraryRow& row, const LibrarySpec& spec, const cuda::UseStream& use, const cuda::Moves& moves, std::string* why_not);

}  // namespace hone::cudnn
