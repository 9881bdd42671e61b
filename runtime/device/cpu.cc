#include "runtime/device/cpu.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/text.h"

#if HONE_OPENMP
#include <omp.h>
#endif

namespace hone {
namespace {

constexpr std::string_view kLevelNames[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-amx"};

struct CpuId {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuId cpu_id(unsigned leaf) {
  CpuId id;
  __get_cpuid_count(leaf, 0, &id.eax, &id.ebx, &id.ecx, &id.edx);  // leaves zeros when there is no such leaf
  return id;
}

bool has_all(unsigned word, std::initializer_list<int> bits) {
  return std::all_of(bits.begin(), bits.end(), [word](int bit) { return (word >> bit & 1) != 0; });
}

/// Those it may run on; none if the system does not tell.
cpu_set_t cores_of_this_thread() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_ZERO(&cores);
  return cores;
}

/// XCR0: which registers the operating system saves.
unsigned saved_registers() {
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/// Linux saves tiles only for processes that ask for it: ARCH_REQ_XCOMP_PERM of arch_prctl, component XTILE_DATA (Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Bits of Intel's manual, volume 2, CPUID; the levels of the x86-64 psABI, section 3.1.1.
CpuLevel find_level() {
  const CpuId basic = cpu_id(1), more = cpu_id(7), extended = cpu_id(0x80000001);
  if (not has_all(basic.ecx, {0, 9, 13, 19, 20, 23}) or not has_all(extended.ecx, {0})) return CpuLevel::kV1;  // SSE3 SSSE3 CX16 SSE4.1 SSE4.2 POPCNT; LAHF
  const bool v3 = has_all(basic.ecx, {12, 22, 27, 28, 29})                                                     // FMA MOVBE OSXSAVE AVX F16C
                  and has_all(more.ebx, {3, 5, 8})                                                             // BMI1 AVX2 BMI2
                  and has_all(extended.ecx, {5})                                                               // LZCNT
                  and has_all(saved_registers(), {1, 2});                                                      // XMM YMM
  if (not v3) return CpuLevel::kV2;
  const bool v4 = has_all(more.ebx, {16, 17, 28, 30, 31})     // AVX512 F DQ CD BW VL
                  and has_all(saved_registers(), {5, 6, 7});  // masks and ZMM
  if (not v4) return CpuLevel::kV3;
  const bool amx = has_all(more.edx, {22, 24})                                    // AMX-BF16 AMX-TILE
                   and has_all(saved_registers(), {17, 18}) and may_use_tiles();  // XTILECFG XTILEDATA
  return amx ? CpuLevel::kV4Amx : CpuLevel::kV4;
}

}  // namespace

std::span<const std::string_view> cpu_level_names() { return kLevelNames; }

std::string_view to_string(CpuLevel level) { return kLevelNames[static_cast<std::size_t>(level)]; }

std::optional<CpuLevel> cpu_level_from_name(std::string_view name) {
  const auto* const found = std::find(std::begin(kLevelNames), std::end(kLevelNames), name);
  if (found == std::end(kLevelNames)) return std::nullopt;
  return static_cast<CpuLevel>(found - std::begin(kLevelNames));
}

CpuLevel host_cpu_level() {
  static const CpuLevel level = find_level();
  return level;
}

std::string host_cpu_model() {
  std::array<char, 49> name = {};
  for (unsigned i = 0; i < 3; ++i) {
    const CpuId id = cpu_id(0x80000002 + i);
    std::memcpy(name.data() + 16 * i, &id, sizeof(id));
  }
  const std::string_view model = trim(name.data());
  return model.empty() ? "unknown" : printable(model);
}

int usable_cores() {
#if HONE_OPENMP
  return std::max(1, omp_get_num_procs());  // where OMP_PROC_BIND has bound this thread to a core, the process has others
#else
  const cpu_set_t cores = cores_of_this_thread();
  return std::max(1, CPU_COUNT(&cores));
#endif
}

void take_all_cores() {
#if HONE_OPENMP
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> numbers(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, numbers.data());
    for (const int number : numbers)
      if (number >= 0 and number < CPU_SETSIZE) CPU_SET(static_cast<unsigned>(number), &cores);
  }
  if (CPU_COUNT(&cores) > 0) sched_setaffinity(0, sizeof(cores), &cores);  // else OpenMP has bound nothing
#endif
}

int this_core() { return sched_getcpu(); }

void leave_this_core() {
  const cpu_set_t usable = cores_of_this_thread();
  const int core = this_core();
  if (core < 0 or CPU_COUNT(&usable) < 2) return;
  cpu_set_t others = usable;
  CPU_CLR(static_cast<unsigned>(core), &others);
  if (sched_setaffinity(0, sizeof(others), &others) == 0) sched_setaffinity(0, sizeof(usable), &usable);  // it has moved by then, and may come back
}

}  // namespace hone
