#include "runtime/device/cuda_calls.h"

#include <algorithm>

#include "runtime/device/cublaslt_matmul.h"
#include "runtime/device/cudnn_conv.h"

namespace hone {

/// How the rows of one library are made calls.
struct RowMaker {
  std::string_view library;
  std::string (*why_not)();
  std::unique_ptr<DeviceCall> (*make)(CudaCalls& calls, const LibraryRow& row, const LibrarySpec& spec);

  static std::unique_ptr<DeviceCall> make_product(CudaCalls& calls, const LibraryRow&, const LibrarySpec& spec) {
    const cublaslt::Library& library = *cublaslt::library(nullptr);
    if (calls.cublaslt_ == nullptr and library.create(&calls.cublaslt_) != 0) return nullptr;
    return cublaslt::make_matmul(library, calls.cublaslt_, spec, calls.use_);
  }
  static std::unique_ptr<DeviceCall> make_convolution(CudaCalls& calls, const LibraryRow& row, const LibrarySpec& spec) {
    const cudnn::Library& library = *cudnn::library(nullptr);
    if (calls.cudnn_ == nullptr and library.create(&calls.cudnn_) != 0) return nullptr;
    try {
      if (not calls.properties_) calls.properties_.emplace(cudnn::device_properties(library, calls.cudnn_));
    } catch (const cudnn::Refused&) {
      return nullptr;
    }
    return cudnn::make_convolution(library, calls.cudnn_, *calls.properties_, row, spec, calls.use_, nullptr);
  }
};

namespace {

std::string why_no_cublaslt() {
  std::string why;
  return cublaslt::library(&why) == nullptr ? why : "";
}
std::string why_no_cudnn() {
  std::string why;
  return cudnn::library(&why) == nullptr ? why : "";
}

constexpr RowMaker kRowMakers[] = {
    {"cuBLASLt", why_no_cublaslt, RowMaker::make_product},
    {"cuDNN", why_no_cudnn, RowMaker::make_convolution},
};

const RowMaker* find_maker(std::string_view library) {
  const auto* const found = std::ranges::find(kRowMakers, library, &RowMaker::library);
  return found == std::end(kRowMakers) ? nullptr : found;
}

}  // namespace

CudaCalls::~CudaCalls() {
  properties_.reset();
  if (cublaslt_ != nullptr) (void)cublaslt::library(nullptr)->destroy(cublaslt_);
  if (cudnn_ != nullptr) (void)cudnn::library(nullptr)->destroy(cudnn_);
}

std::string CudaCalls::why_not(std::string_view library) {
  const RowMaker* maker = find_maker(library);
  return maker == nullptr ? "this version of Hone does not call it" : maker->why_not();
}

std::unique_ptr<DeviceCall> CudaCalls::make(const LibraryRow& row, const LibrarySpec& spec) {
  const RowMaker* maker = find_maker(row.device_library);
  return maker == nullptr or not maker->why_not().empty() ? nullptr : maker->make(*this, row, spec);
}

}  // namespace hone
