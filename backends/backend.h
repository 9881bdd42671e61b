// A backend: a target of the passes, and the code that its kernels become. The one list of them is in backends/targets.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/kernel/kernel.h"
#include "passes/target.h"

namespace hone {

/// For which processors code is wanted.
struct CodeLevels {
  std::vector<std::string> cpu = {"x86-64-v3", "x86-64-v4", "x86-64-v4-amx"};  ///< the best that the processor has is loaded; behind v4, v4-amx has only those kernels that gain from it
  std::vector<std::string> gpu = {"sm_80", "sm_90"};          ///< PTX of each; the driver compiles the best for what is there, also for later ones
};

/// plan::Program::code
using TargetCode = std::vector<std::pair<std::string, std::vector<std::byte>>>;

class Backend : public Target {
 public:
  virtual TargetCode emit(std::span<const Kernel* const> kernels, const CodeLevels& levels) const = 0;
  /// What it makes of the kernels for each level, to be read: "llvm", "asm", "ptx"; "" if it has no such thing.
  virtual std::string text(std::span<const Kernel* const> kernels, std::string_view kind, const CodeLevels& levels) const = 0;
  /// Do its kernels gain from weights in panels (backends/panels.h)?
  virtual bool wants_panels() const = 0;
};

}  // namespace hone
