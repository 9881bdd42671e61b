// The LLVM emitter: kernels in, readable IR, assembly, an ELF shared object for x86 or PTX for NVIDIA's GPUs out. No LLVM header is seen from here.
//
// Every kernel becomes one exported function, with the ABI of ir/kernel/kernel.h or, in blocks, that of backends/llvm/gpu_blocks.h. What the caller owes it:
//   buffers   one pointer per KernelBuffer, aligned to its elements (fed memory is the caller's own); a buffer without elements may be null
//   aliasing  no buffer overlaps another, but a written buffer may *be* a read one where may_share_memory says so
//   sizes     the values of size_arguments(kernel), each at least what its Dim says; every element count fits in 63 bits
//   range     0 <= begin <= end <= the number of outer points; any split of the range gives bit for bit the same results. A kernel that works in tiles
//             does the tiles that fall to a share of the points: a call may write points of another call's range, and leave some of its own to that
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/kernel.h"

namespace hone {

/// How the outer points of a kernel are shared out.
enum class KernelForm : std::uint8_t {
  kRange,   ///< a call does a range of them: for the threads of a processor
  kBlocks,  ///< blocks of threads with barriers between phases, as on a GPU; code for a processor plays it, a call does what one block does
};

struct EmitOptions {
  std::string cpu = "x86-64-v3";  ///< as LLVM names it, or "x86-64-v4-amx"; decides instruction set and vector width. "sm_80": a GPU, whose code is in blocks
  int opt_level = 2;              ///< 0 to 3
  KernelForm form = KernelForm::kRange;
  bool only_for_matrices = false;  ///< leave out kernels that do not use a matrix unit (blocking.h): code without one is as good for them
};

/// Each processor, named as LLVM does or "x86-64-v4-amx", with everything else as usual. Where that comes with "x86-64-v4", it is only for what gains from it.
std::vector<EmitOptions> options_for(std::span<const std::string> processors);

/// Is emitted text the IR as written down by the emitter, or what LLVM's passes made of it?
enum class IrStage : std::uint8_t { kEmitted, kOptimized };

/// The LLVM IR of the kernels as text.
std::string emit_llvm(std::span<const Kernel* const> kernels, const EmitOptions& options, IrStage stage);

/// Their assembly; for a GPU it is PTX, which its driver compiles.
std::string emit_assembly(std::span<const Kernel* const> kernels, const EmitOptions& options);

/// What --emit llvm, asm and ptx print: the optimized IR (kind "llvm") or else the assembly for each processor, behind a comment with its name.
std::string emit_texts(std::span<const Kernel* const> kernels, std::span<const EmitOptions> processors, std::string_view kind);

/// The bytes of an ELF shared object that exports each kernel under its name. Undefined symbols are those of libc and libm
/// (expf is not among them, powf is), which dlopen finds in the process. Names must be distinct. May be called from any thread.
std::vector<std::byte> compile_shared_object(std::span<const Kernel* const> kernels, const EmitOptions& options);
/// The same for several processors, one object each, side by side on all cores; nothing for one whose kernels are all left out.
std::vector<std::vector<std::byte>> compile_shared_objects(std::span<const Kernel* const> kernels, std::span<const EmitOptions> targets);

/// Their PTX, with each kernel's plan::LaunchShape beside it. For the GPU `options.cpu` and all later ones.
std::string compile_ptx(std::span<const Kernel* const> kernels, const EmitOptions& options);

/// May buffer `written` and buffer `read` of the kernel be the same memory? Yes if both have the same shape and element type, each outer
/// point reads nothing of `read` but what it writes to `written` itself, and it reads each element no later than it writes it.
/// The emitted code relies on it that other buffers do not overlap; the schedule asks before it updates in place.
bool may_share_memory(const Kernel& kernel, std::uint32_t written, std::uint32_t read);

}  // namespace hone
