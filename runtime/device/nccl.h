// NCCL, NVIDIA's library of exchanges between GPUs, loaded when it is used. The declarations are the library's ABI (nccl.h); a test holds them against the header where it is.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/device/cuda_library.h"
#include "runtime/device/shared_library.h"

namespace hone::nccl {

using Result = int;  // 0: success
using Comm = struct OpaqueComm*;

inline constexpr Result kInProgress = 7;
inline constexpr int kSum = 0;                                                       // ncclRedOp_t
inline constexpr int kI32 = 2, kI64 = 4, kU8 = 1, kF16 = 6, kF32 = 7, kF64 = 8, kBF16 = 9;  // ncclDataType_t

struct UniqueId {
  char bytes[128];
};

/// The first fields of ncclConfig_t, as they were in version 2.18: `size` tells the library that there are no more.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;  ///< calls return at once, so that a peer that does not come can be given up
  int clusters = INT_MIN, least_blocks = INT_MIN, most_blocks = INT_MIN;
  const char* network = nullptr;
  int split_share = INT_MIN;
};

// name in the library, its own name here, result, arguments
// clang-format off
#define HONE_NCCL_FUNCTIONS(X)                                                                                                     \
  X(ncclGetVersion, get_version, Result, (int* version))                                                                           \
  X(ncclGetErrorString, result_text, const char*, (Result result))                                                                 \
  X(ncclGetLastError, last_error, const char*, (Comm comm))                                                                        \
  X(ncclGetUniqueId, unique_id, Result, (UniqueId * id))                                                                           \
  X(ncclCommInitRankConfig, comm_create, Result, (Comm * comm, int size, UniqueId id, int rank, Config* config))                   \
  X(ncclCommGetAsyncError, comm_error, Result, (Comm comm, Result* error))                                                         \
  X(ncclCommAbort, comm_abort, Result, (Comm comm))                                                                                \
  X(ncclGroupStart, group_start, Result, ())                                                                                       \
  X(ncclGroupEnd, group_end, Result, ())                                                                                           \
  X(ncclAllReduce, all_reduce, Result, (const void* from, void* to, std::size_t count, int type, int operation, Comm comm, cuda::StreamHandle stream)) \
  X(ncclReduce, reduce, Result, (const void* from, void* to, std::size_t count, int type, int operation, int root, Comm comm, cuda::StreamHandle stream)) \
  X(ncclBroadcast, broadcast, Result, (const void* from, void* to, std::size_t count, int type, int root, Comm comm, cuda::StreamHandle stream))
// clang-format on

/// The library's functions; never unloaded once it is there.
struct Library {
#define HONE_NCCL_FUNCTION(symbol, name, result, arguments) result(*name) arguments = nullptr;
  HONE_NCCL_FUNCTIONS(HONE_NCCL_FUNCTION)
#undef HONE_NCCL_FUNCTION
  static constexpr const char* kFiles[] = {"libnccl.so.2"};
  /// The first version whose communicators need not block and have a `size` in their configuration that this one's is.
  static constexpr std::size_t kOldest = 21800;
  /// From an open library; false, and *why, if it lacks one.
  bool find_functions(void* library, std::string* why);
  std::size_t number() const;  ///< of its version

  std::string version() const { return version_text(number()); }  ///< "2.28.9"
  /// "unhandled system error (2): ..." with what the library says of the last failure.
  std::string text(Result result, Comm comm) const;
};

inline const Library* library(std::string* why) { return library_of_machine<Library>(why); }

}  // namespace hone::nccl
