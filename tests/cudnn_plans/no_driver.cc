// A stand-in for NVIDIA's driver where there is none: every function is there, does nothing and succeeds, but for those by which a GPU would be found. With it in its process cuDNN recommends engines that it compiles
// when running, and compiles them, for a GPU that is described to it.
#include <cstring>

namespace {

constexpr int kNoDevice = 100, kNotFound = 500;  // CUresult

int succeed() { return 0; }
int give_handle(void** handle) { return *handle = handle, 0; }
int find_no_device(unsigned) { return kNoDevice; }
int find_no_table(const void**, const void*) { return kNotFound; }
int tell_version(int* version) { return *version = 13000, 0; }
int find(const char* name, void** function, int, unsigned long long, void* = nullptr);

struct Known {
  const char* name;
  void* function;
};
const Known kKnown[] = {
    {"cuInit", reinterpret_cast<void*>(find_no_device)},
    {"cuGetExportTable", reinterpret_cast<void*>(find_no_table)},
    {"cuDriverGetVersion", reinterpret_cast<void*>(tell_version)},
    {"cuGetProcAddress", reinterpret_cast<void*>(find)},
    {"cuLibraryLoadData", reinterpret_cast<void*>(give_handle)},
    {"cuLibraryGetKernel", reinterpret_cast<void*>(give_handle)},
};

int find(const char* name, void** function, int, unsigned long long, void*) {
  *function = reinterpret_cast<void*>(succeed);
  for (const Known& known : kKnown)
    if (std::strcmp(known.name, name) == 0) *function = known.function;
  return 0;
}

}  // namespace

// What cuDNN looks up by name, beside what it asks cuGetProcAddress for.
// clang-format off
#define HONE_SUCCEEDING(X)                                                                                                                                            \
  X(cuCtxGetCurrent) X(cuCtxGetLimit) X(cuCtxPopCurrent) X(cuCtxPushCurrent) X(cuDeviceGet) X(cuDeviceGetCount) X(cuGetErrorName) X(cuGetErrorString)                 \
  X(cuKernelGetAttribute) X(cuKernelSetAttribute) X(cuLaunchCooperativeKernel) X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuLibraryUnload)                               \
  X(cuLinkAddData) X(cuLinkComplete) X(cuLinkCreate) X(cuLinkDestroy) X(cuOccupancyMaxPotentialClusterSize) X(cuStreamGetCtx)
// clang-format on

extern "C" {
#define HONE_SUCCEED(name) \
  int name() { return 0; }
HONE_SUCCEEDING(HONE_SUCCEED)
int cuLibraryLoadData(void** library, const void*) { return give_handle(library); }
int cuLibraryLoadFromFile(void** library, const char*) { return give_handle(library); }
int cuLibraryGetKernel(void** kernel, void*, const char*) { return give_handle(kernel); }
int cuInit(unsigned flags) { return find_no_device(flags); }
int cuGetExportTable(const void** table, const void* id) { return find_no_table(table, id); }
int cuDriverGetVersion(int* version) { return tell_version(version); }
int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) { return find(name, function, version, flags); }
int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags, void* status) { return find(name, function, version, flags, status); }
}
