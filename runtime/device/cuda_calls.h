// The libraries that a GPU is worked by beside its own kernels: which are there, and their calls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/choices.h"
#include "runtime/device/cuda_stream.h"
#include "runtime/device/cudnn.h"
#include "runtime/device/cublaslt.h"

namespace hone {

class CudaCalls {
 public:
  /// `use` and `moves` are of the device for which they are; handles are made when the first call is.
  explicit CudaCalls(cuda::UseStream use, cuda::Moves moves) : use_(std::move(use)), moves_(std::move(moves)) {}
  /// With the device's context current.
  ~CudaCalls();
  CudaCalls(const CudaCalls&) = delete;
  CudaCalls& operator=(const CudaCalls&) = delete;

  /// "" or why the library of that name is not there.
  static std::string why_not(std::string_view library);
  /// The library of that name with its version; it is there.
  static std::string version(std::string_view library);
  /// Ways to make the call, the best recommended first, at most so many; none if the library does not start on this device, or does not take the sizes. With the device's context current.
  std::vector<Candidate> make(const LibraryRow& row, const LibrarySpec& spec, int most);

 private:
  friend struct RowMaker;

  const cuda::UseStream use_;
  const cuda::Moves moves_;
  cublaslt::Handle cublaslt_ = nullptr;
  cudnn::Handle cudnn_ = nullptr;
  std::optional<cudnn::Descriptor> properties_;  ///< of the device, for cuDNN
};

}  // namespace hone
