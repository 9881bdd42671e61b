#include "runtime/device/cuda_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/device/cublaslt_matmul.h"
#include "runtime/device/cudnn_attention.h"
#include "runtime/device/cudnn_conv.h"
#include "runtime/device/cudnn_rnn.h"

namespace hone {

/// How the rows of one library are made calls.
struct RowMaker {
  std::string_view library;
  std::string (*why_not)();
  std::string (*version)();
  std::vector<Candidate> (*make)(CudaCalls& calls, const LibraryRow& row, const LibrarySpec& spec, int most);

  static std::vector<Candidate> make_products(CudaCalls& calls, const LibraryRow&, const LibrarySpec& spec, int most) {
    const cublaslt::Library& library = *cublaslt::library(nullptr);
    if (calls.cublaslt_ == nullptr and library.create(&calls.cublaslt_) != 0) return {};
    return cublaslt::make_matmuls(library, calls.cublaslt_, spec, calls.use_, most);
  }
  static std::vector<Candidate> make_of_cudnn(CudaCalls& calls, const LibraryRow& row, const LibrarySpec& spec, int most) {
    const cudnn::Library& library = *cudnn::library(nullptr);
    if (calls.cudnn_ == nullptr and library.create(&calls.cudnn_) != 0) return {};
    if (row.name.starts_with("cudnn.recurrent")) return cudnn::make_recurrent(library, calls.cudnn_, row, spec, calls.use_, calls.moves_, nullptr);
    try {
      if (not calls.properties_) calls.properties_.emplace(cudnn::device_properties(library, calls.cudnn_));
    } catch (const cudnn::Refused&) {
      return {};
    }
    const bool is_attention = row.name.starts_with("cudnn.attention");
    return (is_attention ? cudnn::make_attention : cudnn::make_convolutions)(library, calls.cudnn_, *calls.properties_, row, spec, calls.use_, static_cast<std::size_t>(most), nullptr);
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
    {"cuBLASLt", why_no_cublaslt, [] { return cublaslt::library(nullptr)->version(); }, RowMaker::make_products},
    {"cuDNN", why_no_cudnn, [] { return cudnn::library(nullptr)->version(); }, RowMaker::make_of_cudnn},
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

std::string CudaCalls::version(std::string_view library) { return fmt::format("{} {}", library, find_maker(library)->version()); }

std::vector<Candidate> CudaCalls::make(const LibraryRow& row, const LibrarySpec& spec, int most) {
  const RowMaker* maker = find_maker(row.device_library);
  return maker == nullptr or not maker->why_not().empty() ? std::vector<Candidate>() : maker->make(*this, row, spec, most);
}

}  // namespace hone
