// Kernels written by hand, compiled code that is loaded and run, and the comparison of the two with the interpreter.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/llvm/emit.h"
#include "ir/kernel/kernel.h"
#include "runtime/device/code_loader.h"
#include "runtime/plan/launch.h"

namespace hone {

/// Writes a kernel down. Axes and buffers by number in the order of their declaration; outer axes first.
class KernelWriter {
 public:
  explicit KernelWriter(std::string name) { kernel.name = std::move(name); }

  std::uint32_t operand(DType dtype, Shape shape) { return buffer(dtype, std::move(shape), Access::kRead); }
  std::uint32_t result(DType dtype, Shape shape) { return buffer(dtype, std::move(shape), Access::kWrite); }
  Scalar outer(Dim extent);
  /// An inner axis of the current phase.
  Scalar inner(Dim extent);
  void phase() { kernel.phases.emplace_back(); }
  void scatter_phase();

  Scalar load(std::uint32_t buffer, const std::vector<Scalar>& index) { return load_if({}, buffer, index); }
  Scalar load_if(Scalar guard, std::uint32_t buffer, const std::vector<Scalar>& index);
  /// The value that later phases read.
  Scalar reduce(ReduceKind kind, Scalar value);
  Store& store(std::uint32_t buffer, const std::vector<Scalar>& index, Scalar value);
  Scalar number(std::int64_t value) { return expr::constant_int(kernel.exprs, DType::kI64, value); }
  Scalar number(DType dtype, double value) { return expr::constant(kernel.exprs, dtype, value); }
  Scalar size(const Dim& dim);

  Kernel kernel;

 private:
  std::uint32_t buffer(DType dtype, Shape shape, Access access);
  Scalar axis(Dim extent);
};

/// Memory of `count` elements, aligned to 64 bytes, with an unmapped page right behind it, so that reading beyond the end is a crash.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const { return reinterpret_cast<T*>(data_); }

 private:
  std::byte* pages_;
  std::size_t mapped_, bytes_;
  std::byte* data_;
};

/// A shared object, loaded from memory.
class LoadedKernels {
 public:
  explicit LoadedKernels(const std::vector<std::byte>& shared_object);
  ~LoadedKernels();
  LoadedKernels(const LoadedKernels&) = delete;
  LoadedKernels& operator=(const LoadedKernels&) = delete;

  using Function = void (*)(void* const* buffers, const std::int64_t* sizes, std::int64_t begin, std::int64_t end);
  Function operator[](const std::string& name) const;
  /// Of code in blocks: what one of them does.
  BlockFunction block(const std::string& name) const;
  const plan::LaunchShape& launch(const std::string& name) const;

 private:
  void* find(const std::string& name) const;

  int file_;  // open as long as the object is loaded: the loader tells objects apart by name, and the name is this number

  void* handle_;
};

/// The CPU levels that this machine runs, lowest first.
std::vector<std::string> runnable_cpus();

struct AgreeOptions {
  double tolerance = 2e-6;  ///< |difference| <= tolerance * (1 + |expected|) for floats; integers and bool must be equal
  std::vector<DimBindings> sizes = {{}};  ///< one run for each
  /// Element `i` of operand `buffer`; without it numbers of moderate size.
  std::function<double(std::uint32_t buffer, std::int64_t i)> fill = {};
};

/// Runs the compiled kernel on every CPU level that this machine has, in one call and in several that share the outer range, and in blocks as a GPU would, by one block and by several in
/// reverse order that share the outer range, and from memory that begins elsewhere; expects what the interpreter computes. The results of the calls must agree bit for bit, and so must those of the blocks.
void expect_agrees(const Kernel& kernel, const AgreeOptions& options = {}, int opt_level = 2);

/// The same for many kernels, compiled together: small ones take less time than a module and a shared object of their own.
class AgreeingKernels {
 public:
  void add(Kernel kernel, AgreeOptions options = {});
  void expect(int opt_level = 2) const;

 private:
  std::deque<std::pair<Kernel, AgreeOptions>> cases_;  // no two kernels of one name
};

/// The kernel as optimized LLVM IR.
std::string optimized(const Kernel& kernel, const std::string& cpu = "x86-64-v3");

}  // namespace hone
