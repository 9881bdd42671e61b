// CUDA's driver library, loaded when it is used: so one binary runs with and without a GPU, and is built with and without the toolkit. The declarations are the library's ABI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hone::cuda {

// As in cuda.h.
using Result = int;  // 0: success
using DeviceNumber = int;
using Address = unsigned long long;
using Context = struct OpaqueContext*;
using Module = struct OpaqueModule*;
using Function = struct OpaqueFunction*;
using StreamHandle = struct OpaqueStream*;
using EventHandle = struct OpaqueEvent*;
using Graph = struct OpaqueGraph*;
using GraphRun = struct OpaqueGraphRun*;

struct Uuid {
  unsigned char bytes[16];
};

inline constexpr Result kOutOfMemory = 2, kNotReady = 600;
// Of cuModuleLoadDataEx: the code is the reason.
inline constexpr Result kInvalidImage = 200, kNoBinaryForGpu = 209, kInvalidPtx = 218, kNoJitCompiler = 221, kUnsupportedPtx = 222, kJitDisabled = 223;
inline constexpr int kComputeMajor = 75, kComputeMinor = 76, kProcessors = 16;  // of cuDeviceGetAttribute
inline constexpr int kClock = 13, kMemoryClock = 36, kMemoryBits = 37;           // of it: in kHz; as wide as its bus
inline constexpr int kComputeMode = 20, kProhibited = 2;                         // of it, and what forbids all use
inline constexpr int kErrorLog = 5, kErrorLogBytes = 6;                                              // of cuModuleLoadDataEx
inline constexpr unsigned kNonBlockingStream = 1, kEventWithTime = 0, kEventWithoutTime = 2, kRelaxedCapture = 2;
inline constexpr unsigned kPinnedForAll = 1;   // of cuMemHostAlloc: for all contexts
inline constexpr unsigned kRecordInGraph = 1;  // of cuEventRecordWithFlags, while captured: each replay records it

// name in the library, its own name here, arguments
// clang-format off
#define HONE_CUDA_FUNCTIONS(X)                                                                                                     \
  X(cuInit, init, (unsigned flags))                                                                                                \
  X(cuDriverGetVersion, driver_version, (int* version))                                                                            \
  X(cuGetErrorName, error_name, (Result error, const char** name))                                                                 \
  X(cuGetErrorString, error_string, (Result error, const char** text))                                                             \
  X(cuDeviceGetCount, device_count, (int* count))                                                                                  \
  X(cuDeviceGet, device_get, (DeviceNumber * device, int ordinal))                                                                 \
  X(cuDeviceGetName, device_name, (char* name, int length, DeviceNumber device))                                                   \
  X(cuDeviceGetAttribute, device_attribute, (int* value, int attribute, DeviceNumber device))                                      \
  X(cuDeviceTotalMem_v2, device_memory, (std::size_t * bytes, DeviceNumber device))                                                \
  X(cuDeviceGetUuid_v2, device_uuid, (Uuid * uuid, DeviceNumber device))                                                           \
  X(cuDevicePrimaryCtxRetain, context_retain, (Context * context, DeviceNumber device))                                            \
  X(cuDevicePrimaryCtxRelease_v2, context_release, (DeviceNumber device))                                                          \
  X(cuCtxSetCurrent, context_use, (Context context))                                                                               \
  X(cuMemGetInfo_v2, memory_info, (std::size_t * free, std::size_t* total))                                                        \
  X(cuMemAlloc_v2, memory_allocate, (Address * memory, std::size_t bytes))                                                         \
  X(cuMemFree_v2, memory_free, (Address memory))                                                                                   \
  X(cuMemHostAlloc, pinned_allocate, (void** memory, std::size_t bytes, unsigned flags))                                          \
  X(cuMemFreeHost, pinned_free, (void* memory))                                                                                    \
  X(cuMemcpyHtoDAsync_v2, copy_in, (Address to, const void* from, std::size_t bytes, StreamHandle stream))                         \
  X(cuMemcpyDtoHAsync_v2, copy_out, (void* to, Address from, std::size_t bytes, StreamHandle stream))                              \
  X(cuMemcpyDtoDAsync_v2, copy, (Address to, Address from, std::size_t bytes, StreamHandle stream))                                \
  X(cuMemsetD32Async, fill, (Address to, unsigned word, std::size_t words, StreamHandle stream))                                   \
  X(cuMemcpyDtoH_v2, copy_out_now, (void* to, Address from, std::size_t bytes))                                                    \
  X(cuModuleLoadDataEx, module_load, (Module * module, const void* image, unsigned count, int* options, void** values))            \
  X(cuModuleUnload, module_unload, (Module module))                                                                                \
  X(cuModuleGetFunction, module_function, (Function * function, Module module, const char* name))                                  \
  X(cuModuleGetGlobal_v2, module_global, (Address * memory, std::size_t* bytes, Module module, const char* name))                  \
  X(cuLaunchKernel, launch, (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream, void** arguments, void** extra)) \
  X(cuStreamCreate, stream_create, (StreamHandle * stream, unsigned flags))                                                        \
  X(cuStreamDestroy_v2, stream_destroy, (StreamHandle stream))                                                                     \
  X(cuStreamSynchronize, stream_synchronize, (StreamHandle stream))                                                                \
  X(cuStreamQuery, stream_query, (StreamHandle stream))                                                                            \
  X(cuStreamWaitEvent, stream_wait, (StreamHandle stream, EventHandle event, unsigned flags))                                      \
  X(cuEventCreate, event_create, (EventHandle * event, unsigned flags))                                                            \
  X(cuEventDestroy_v2, event_destroy, (EventHandle event))                                                                         \
  X(cuEventRecord, event_record, (EventHandle event, StreamHandle stream))                                                         \
  X(cuEventRecordWithFlags, event_record_with, (EventHandle event, StreamHandle stream, unsigned flags))                           \
  X(cuEventElapsedTime, event_elapsed, (float* milliseconds, EventHandle from, EventHandle to))                                    \
  X(cuStreamBeginCapture_v2, capture_begin, (StreamHandle stream, int mode))                                                       \
  X(cuStreamEndCapture, capture_end, (StreamHandle stream, Graph * graph))                                                         \
  X(cuGraphInstantiateWithFlags, graph_instantiate, (GraphRun * run, Graph graph, unsigned long long flags))                       \
  X(cuGraphLaunch, graph_launch, (GraphRun run, StreamHandle stream))                                                              \
  X(cuGraphExecDestroy, graph_run_destroy, (GraphRun run))                                                                         \
  X(cuGraphDestroy, graph_destroy, (Graph graph))
// clang-format on

/// The library's functions; never unloaded once it is there.
struct Library {
#define HONE_CUDA_FUNCTION(symbol, name, arguments) Result(*name) arguments = nullptr;
  HONE_CUDA_FUNCTIONS(HONE_CUDA_FUNCTION)
#undef HONE_CUDA_FUNCTION

  /// "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
  std::string text(Result error) const;
};

/// The oldest driver that takes the PTX of plans (CUDA 11.8), and the oldest GPU for which there is any (sm_80).
inline constexpr int kOldestDriver = 11080, kOldestGpu = 80;

/// Opens the library `file` and finds all functions in it. Null, and *why, if something is missing.
std::unique_ptr<Library> open_library(const std::string& file, std::string* why);

/// The machine's, made ready. Null, and *why (which may be null), if there is none, its driver is too old, or it does not start.
const Library* library(std::string* why);

struct Gpu {
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  std::uint64_t memory = 0;
  std::string why_not;  ///< it cannot be used; "": it can, as far as is known without using it
};
/// The GPUs that the machine's library sees (CUDA_VISIBLE_DEVICES), or that one; *why (which may be null) if none.
std::vector<Gpu> gpus(std::string* why);
std::vector<Gpu> gpus(const Library& cuda, std::string* why);

/// A library of NVIDIA's that speeds things up where it is: "cuBLASLt 13.0.0", or why it cannot be used.
struct Companion {
  std::string name;
  std::string version;  ///< empty: it cannot be used
  std::string reason;
};
std::vector<Companion> companions();

}  // namespace hone::cuda
