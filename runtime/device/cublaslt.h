// cuBLASLt, NVIDIA's library of matrix products, loaded when it is used. The declarations are the library's ABI (cublasLt.h); a test holds them against the header where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/device/cuda_library.h"
#include "runtime/device/shared_library.h"

namespace hone::cublaslt {

using Status = int;  // 0: success
using Handle = struct OpaqueHandle*;
using MatmulDesc = struct OpaqueMatmulDesc*;
using Layout = struct OpaqueLayout*;
using Preference = struct OpaquePreference*;

struct Algorithm {
  std::uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace;
  Status status;
  float waves;
  int reserved[4];
};

inline constexpr int kF32 = 0, kF16 = 2, kBF16 = 14;                                                                  // cudaDataType
inline constexpr int kComputeF32 = 68, kComputeTf32 = 77;                                                              // cublasComputeType_t: f32 as it is, or its factors as TF32
inline constexpr int kTransposed = 1;                                                                                 // cublasOperation_t
inline constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8, kDescBiasType = 26;     // cublasLtMatmulDescAttributes_t
inline constexpr std::uint32_t kEpilogueBias = 4, kEpilogueReluBias = 6, kEpilogueBiasGradA = 256, kEpilogueBiasGradB = 512;  // cublasLtEpilogue_t
inline constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;                                                   // cublasLtMatrixLayoutAttribute_t
inline constexpr int kMaxWorkspace = 1, kReductionSchemes = 3, kAlignmentA = 5, kAlignmentB = 6, kAlignmentC = 7, kAlignmentD = 8;  // cublasLtMatmulPreferenceAttributes_t
inline constexpr std::uint32_t kReductionInComputeType = 2;                                                           // cublasLtReductionScheme_t

// name in the library, its own name here, result, arguments
// clang-format off
#define HONE_CUBLASLT_FUNCTIONS(X)                                                                                                 \
  X(cublasLtGetVersion, get_version, std::size_t, ())                                                                              \
  X(cublasLtGetStatusName, status_name, const char*, (Status status))                                                              \
  X(cublasLtGetStatusString, status_text, const char*, (Status status))                                                            \
  X(cublasLtCreate, create, Status, (Handle* handle))                                                                              \
  X(cublasLtDestroy, destroy, Status, (Handle handle))                                                                             \
  X(cublasLtMatmulDescCreate, desc_create, Status, (MatmulDesc* desc, int compute, int scale))                                     \
  X(cublasLtMatmulDescSetAttribute, desc_set, Status, (MatmulDesc desc, int attribute, const void* value, std::size_t bytes))      \
  X(cublasLtMatmulDescGetAttribute, desc_get, Status, (MatmulDesc desc, int attribute, void* value, std::size_t bytes, std::size_t* written)) \
  X(cublasLtMatmulDescDestroy, desc_destroy, Status, (MatmulDesc desc))                                                            \
  X(cublasLtMatrixLayoutCreate, layout_create, Status, (Layout* layout, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading)) \
  X(cublasLtMatrixLayoutSetAttribute, layout_set, Status, (Layout layout, int attribute, const void* value, std::size_t bytes))    \
  X(cublasLtMatrixLayoutGetAttribute, layout_get, Status, (Layout layout, int attribute, void* value, std::size_t bytes, std::size_t* written)) \
  X(cublasLtMatrixLayoutDestroy, layout_destroy, Status, (Layout layout))                                                          \
  X(cublasLtMatmulPreferenceCreate, preference_create, Status, (Preference* preference))                                           \
  X(cublasLtMatmulPreferenceSetAttribute, preference_set, Status, (Preference preference, int attribute, const void* value, std::size_t bytes)) \
  X(cublasLtMatmulPreferenceDestroy, preference_destroy, Status, (Preference preference))                                          \
  X(cublasLtMatmulAlgoGetHeuristic, heuristic, Status, (Handle handle, MatmulDesc desc, Layout a, Layout b, Layout c, Layout d, Preference preference, int wanted, Heuristic* found, int* count)) \
  X(cublasLtMatmul, matmul, Status, (Handle handle, MatmulDesc desc, const void* alpha, const void* a, Layout a_layout, const void* b, Layout b_layout, const void* beta, const void* c, Layout c_layout, void* d, Layout d_layout, const Algorithm* algorithm, void* workspace, std::size_t workspace_bytes, cuda::StreamHandle stream))
// clang-format on

/// The library's functions; never unloaded once it is there.
struct Library {
#define HONE_CUBLASLT_FUNCTION(symbol, name, result, arguments) result(*name) arguments = nullptr;
  HONE_CUBLASLT_FUNCTIONS(HONE_CUBLASLT_FUNCTION)
#undef HONE_CUBLASLT_FUNCTION
  static constexpr const char* kFiles[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  static constexpr std::size_t kOldest = 120000;
  /// From an open library; false, and *why, if it lacks one.
  bool find_functions(void* library, std::string* why);
  std::size_t number() const;  ///< of its version

  std::string version() const { return version_text(number()); }  ///< "13.1.0"
  /// "CUBLAS_STATUS_NOT_SUPPORTED (15): the requested functionality is not supported"
  std::string text(Status status) const;
};

inline const Library* library(std::string* why) { return library_of_machine<Library>(why); }

}  // namespace hone::cublaslt
