// What this processor can do.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hone {

/// The psABI's levels, and the fourth with AMX's tiles of bf16; each includes those before it. Their names ("x86-64-v3") are the names of code in a plan.
enum class CpuLevel : std::uint8_t { kV1, kV2, kV3, kV4, kV4Amx };

/// All of them, lowest first.
std::span<const std::string_view> cpu_level_names();
std::string_view to_string(CpuLevel level);
std::optional<CpuLevel> cpu_level_from_name(std::string_view name);

/// The best level of this processor that its operating system supports too. Where there is AMX, asks Linux once to let this process use it.
CpuLevel host_cpu_level();

/// "Intel(R) Xeon(R) Processor"; "unknown" if the processor does not tell.
std::string host_cpu_model();

/// Number of cores this process may run on; at least 1.
int usable_cores();

/// Lets the calling thread run on all cores of the process, of which OpenMP binds it to some when OMP_PROC_BIND or OMP_PLACES says so. What it starts from then on, a program or a thread, may run on all of them, too.
void take_all_cores();

/// The core that the calling thread runs on just now.
int this_core();
/// Lets the calling thread go on on another of the cores it may run on; if there is but one it stays.
void leave_this_core();

}  // namespace hone
