// Machine code of a plan: the best object for this processor, loaded without touching the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace hone {

/// The kernel ABI: the outer points begin..end-1 (ir/kernel/kernel.h).
using KernelFunction = void (*)(void* const* buffers, const std::int64_t* sizes, std::int64_t begin, std::int64_t end);

/// Of kernels in blocks: what one block of a launch of so many does.
using BlockFunction = void (*)(void* const* buffers, const std::int64_t* sizes, std::int64_t begin, std::int64_t end, std::int64_t block, std::int64_t blocks);

/// Shared objects in memory, mapped for execution until they are destroyed.
class LoadedCode {
 public:
  LoadedCode() = default;
  /// Throws Error kPlanMismatch with the loader's reason.
  explicit LoadedCode(std::span<const std::byte> object);
  /// One more object, for what those before it do not have. Throws as the constructor does.
  void add(std::span<const std::byte> object);
  ~LoadedCode();
  LoadedCode(LoadedCode&& other) noexcept;
  LoadedCode& operator=(LoadedCode&& other) noexcept;

  /// Null if there is no such kernel.
  KernelFunction find(const std::string& name) const;
  BlockFunction find_in_blocks(const std::string& name) const;
  /// Where a constant lies, or null.
  const void* find_constant(const std::string& name) const;

 private:
  struct Object {
    void* handle;
    int file;  ///< stays open: the loader tells objects apart by name, and the name is this number
  };
  void* symbol(const std::string& name) const;

  std::vector<Object> objects_;
};

/// Loads the program's code of the highest level that this processor has, and behind code for AMX, which may have only some of the kernels, that of the next level; nothing if the program has no code at all.
/// Throws Error kPlanMismatch when there is code, but none that this processor can run.
LoadedCode load_code(const plan::Program& program);

}  // namespace hone
