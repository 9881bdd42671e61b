#include "tests/backends/kernel_case.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/by_dtype.h"
#include "base/check.h"
#include "ir/kernel/program.h"
#include "ir/kernel/scalar_math.h"
#include "runtime/device/cpu.h"

namespace hone {

namespace {

Scalar leaf(ExprPool& pool, ScalarOp op, DType dtype, std::uint32_t slot) {
  Expr expr;
  expr.op = op;
  expr.dtype = dtype;
  expr.slot = slot;
  return {pool, pool.add(std::move(expr))};
}

std::vector<ExprId> ids_of(const std::vector<Scalar>& scalars) {
  std::vector<ExprId> ids;
  for (const Scalar& scalar : scalars) ids.push_back(scalar.id());
  return ids;
}

}  // namespace

std::uint32_t KernelWriter::buffer(DType dtype, Shape shape, Access access) {
  kernel.buffers.push_back({"b" + std::to_string(kernel.buffers.size()), dtype, std::move(shape), access});
  return static_cast<std::uint32_t>(kernel.buffers.size() - 1);
}

Scalar KernelWriter::axis(Dim extent) {
  const auto number = static_cast<std::uint32_t>(kernel.axes.size());
  kernel.axes.push_back({"i" + std::to_string(number), extent});
  return leaf(kernel.exprs, ScalarOp::kIndex, DType::kI64, number);
}

Scalar KernelWriter::outer(Dim extent) {
  ++kernel.outer_count;
  return axis(extent);
}

Scalar KernelWriter::inner(Dim extent) {
  const Scalar index = axis(extent);
  kernel.phases.back().inner.push_back(static_cast<std::uint32_t>(kernel.axes.size() - 1));
  return index;
}

void KernelWriter::scatter_phase() {
  phase();
  kernel.phases.back().scatter = true;
}

Scalar KernelWriter::load_if(Scalar guard, std::uint32_t buffer, const std::vector<Scalar>& index) {
  Expr expr;
  expr.op = ScalarOp::kLoad;
  expr.dtype = arithmetic_type(kernel.buffers[buffer].dtype);
  expr.slot = buffer;
  expr.index = ids_of(index);
  if (guard.valid()) expr.guard = guard.id();
  return {kernel.exprs, kernel.exprs.add(std::move(expr))};
}

Scalar KernelWriter::reduce(ReduceKind kind, Scalar value) {
  std::uint32_t temp = 0;
  for (const Phase& phase : kernel.phases) temp += static_cast<std::uint32_t>(phase.reductions.size());
  const bool position = kind == ReduceKind::kArgMax or kind == ReduceKind::kArgMin;
  const DType dtype = position ? DType::kI64 : value.dtype();
  kernel.phases.back().reductions.push_back({kind, value.id(), temp, dtype});
  return leaf(kernel.exprs, ScalarOp::kTemp, dtype, temp);
}

Store& KernelWriter::store(std::uint32_t buffer, const std::vector<Scalar>& index, Scalar value) {
  if (kernel.phases.empty()) phase();
  kernel.phases.back().stores.push_back({buffer, ids_of(index), value.id(), {}, kernel.phases.back().scatter ? Combine::kAdd : Combine::kReplace});
  return kernel.phases.back().stores.back();
}

Scalar KernelWriter::size(const Dim& dim) {
  Expr expr;
  expr.op = ScalarOp::kSize;
  expr.dtype = DType::kI64;
  expr.size = dim;
  return {kernel.exprs, kernel.exprs.add(std::move(expr))};
}

GuardedMemory::GuardedMemory(std::size_t bytes) : bytes_(bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t rounded = (bytes + 63) / 64 * 64, pages = (rounded + page - 1) / page * page;
  mapped_ = pages + page;
  void* mapped = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  HONE_CHECK(mapped != MAP_FAILED, "no memory for a test");
  pages_ = static_cast<std::byte*>(mapped);
  HONE_CHECK(mprotect(pages_ + pages, page, PROT_NONE) == 0, "no guard page");
  data_ = pages_ + pages - rounded;
  std::memset(data_, 0x5a, rounded);
}

GuardedMemory::~GuardedMemory() {
  const std::size_t rounded = (bytes_ + 63) / 64 * 64;
  for (std::size_t i = bytes_; i < rounded; ++i) EXPECT_EQ(data_[i], std::byte{0x5a}) << "written behind the end";
  munmap(pages_, mapped_);
}

LoadedKernels::LoadedKernels(const std::vector<std::byte>& shared_object) {
  file_ = memfd_create("kernels", MFD_CLOEXEC);
  HONE_CHECK(file_ >= 0 and write(file_, shared_object.data(), shared_object.size()) == static_cast<ssize_t>(shared_object.size()), "no file in memory");
  handle_ = dlopen(("/proc/self/fd/" + std::to_string(file_)).c_str(), RTLD_NOW | RTLD_LOCAL);
  HONE_CHECK(handle_ != nullptr, dlerror());
}

LoadedKernels::~LoadedKernels() {
  dlclose(handle_);
  close(file_);
}

void* LoadedKernels::find(const std::string& name) const {
  void* symbol = dlsym(handle_, name.c_str());
  HONE_CHECK(symbol != nullptr, "no symbol " + name);
  return symbol;
}

LoadedKernels::Function LoadedKernels::operator[](const std::string& name) const { return reinterpret_cast<Function>(find(name)); }
BlockFunction LoadedKernels::block(const std::string& name) const { return reinterpret_cast<BlockFunction>(find(name)); }
const plan::LaunchShape& LoadedKernels::launch(const std::string& name) const { return *static_cast<const plan::LaunchShape*>(find(plan::launch_symbol(name))); }

std::vector<std::string> runnable_cpus() {
  std::vector<std::string> cpus;
  for (const CpuLevel level : {CpuLevel::kV1, CpuLevel::kV3, CpuLevel::kV4, CpuLevel::kV4Amx})
    if (level <= host_cpu_level()) cpus.emplace_back(to_string(level));
  return cpus;
}

std::string optimized(const Kernel& kernel, const std::string& cpu) {
  const Kernel* const kernels[] = {&kernel};
  return emit_llvm(kernels, {.cpu = cpu}, IrStage::kOptimized);
}

namespace {

/// Element i of memory of type `dtype` as a number.
double get(DType dtype, const void* data, std::int64_t i) {
  if (not has_cpp_type(dtype)) return read_storage(dtype, static_cast<const char*>(data) + i * static_cast<std::int64_t>(size_of(dtype)));
  return by_dtype(held_as(dtype), [&]<typename T>() { return static_cast<double>(static_cast<const T*>(data)[i]); });
}

void put(DType dtype, void* data, std::int64_t i, double value) {
  switch (dtype) {
    case DType::kF32: static_cast<float*>(data)[i] = static_cast<float>(value); return;
    case DType::kF64: static_cast<double*>(data)[i] = value; return;
    default: break;
  }
  if (is_float(dtype)) return write_storage(dtype, static_cast<char*>(data) + i * static_cast<std::int64_t>(size_of(dtype)), value);
  const std::int64_t integer = scalar_math::to_integer(dtype, value);
  std::memcpy(static_cast<char*>(data) + i * static_cast<std::int64_t>(size_of(dtype)), &integer, size_of(dtype));
}

double moderate(DType dtype, std::uint32_t buffer, std::int64_t i) {
  const std::uint64_t hash = (static_cast<std::uint64_t>(i) * 7 + buffer + 1) * 0x9e3779b97f4a7c15U >> 40;
  const double unit = static_cast<double>(hash) / (1 << 24);  // [0, 1)
  if (is_float(dtype)) return 4 * unit - 2;
  if (dtype == DType::kBool) return unit < 0.5;
  return std::floor(info(dtype).is_signed ? 15 * unit - 7 : 9 * unit);
}

/// The buffers of one run, each so many elements behind where memory is aligned.
class Run {
 public:
  Run(const Kernel& kernel, const AgreeOptions& options, const DimBindings& sizes, std::int64_t shift = 0) : kernel_(kernel) {
    for (std::uint32_t b = 0; b < kernel.buffers.size(); ++b) {
      const KernelBuffer& buffer = kernel.buffers[b];
      std::int64_t count = 1;
      for (const std::int64_t extent : evaluate(buffer.shape, sizes)) count *= extent;
      counts_.push_back(count);
      memory_.push_back(std::make_unique<GuardedMemory>(static_cast<std::size_t>(count + shift) * size_of(buffer.dtype)));
      pointers_.push_back(count == 0 ? nullptr : memory_.back()->data() + static_cast<std::size_t>(shift) * size_of(buffer.dtype));
      for (std::int64_t i = 0; i < count; ++i) {
        const double value = buffer.access == Access::kWrite ? 0 : options.fill ? options.fill(b, i) : moderate(buffer.dtype, b, i);
        put(buffer.dtype, pointers_[b], i, value);
      }
    }
    for (const Dim& dim : size_arguments(kernel)) sizes_.push_back(dim.evaluate(sizes));
    points_ = kernel.outer_size().evaluate(sizes);
  }

  void call(LoadedKernels::Function function, std::int64_t begin, std::int64_t end) { function(pointers_.data(), sizes_.data(), begin, end); }
  void launch(BlockFunction function, std::int64_t blocks, std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = blocks; block-- > 0;) function(pointers_.data(), sizes_.data(), begin, end, block, blocks);
  }
  void interpret() { KernelProgram(kernel_, Precision::kFloat).run(pointers_, sizes_, 0, points_); }
  std::int64_t points() const { return points_; }

  void expect_equal_bits(const Run& other, const std::string& what) const {
    for (std::size_t b = 0; b < memory_.size(); ++b)
      if (counts_[b] > 0)
        EXPECT_EQ(std::memcmp(pointers_[b], other.pointers_[b], static_cast<std::size_t>(counts_[b]) * size_of(kernel_.buffers[b].dtype)), 0) << what << ": buffer " << b << " depends on the split";
  }

  void expect_near(const Run& expected, double tolerance, const std::string& what) const {
    for (std::size_t b = 0; b < memory_.size(); ++b) {
      int shown = 0;
      for (std::int64_t i = 0; i < counts_[b] and shown < 4; ++i) {
        if (same(kernel_.buffers[b].dtype, expected.pointers_[b], i, pointers_[b], tolerance)) continue;
        ++shown;
        ADD_FAILURE() << what << ": buffer " << b << " (" << to_string(kernel_.buffers[b].dtype) << ") element " << i << " is "
                      << get(kernel_.buffers[b].dtype, pointers_[b], i) << ", the interpreter has " << get(kernel_.buffers[b].dtype, expected.pointers_[b], i);
      }
    }
  }

 private:
  static bool same(DType dtype, const void* expected, std::int64_t i, const void* found, double tolerance) {
    const auto size = size_of(dtype);
    if (not is_float(dtype)) return std::memcmp(static_cast<const char*>(expected) + i * static_cast<std::int64_t>(size), static_cast<const char*>(found) + i * static_cast<std::int64_t>(size), size) == 0;
    const double a = get(dtype, expected, i), b = get(dtype, found, i);
    if (std::isnan(a) or std::isnan(b)) return std::isnan(a) and std::isnan(b);
    return a == b or std::fabs(a - b) <= tolerance * (1 + std::fabs(a));
  }

  const Kernel& kernel_;
  std::vector<std::unique_ptr<GuardedMemory>> memory_;
  std::vector<std::int64_t> counts_;
  std::vector<void*> pointers_;
  std::vector<std::int64_t> sizes_;
  std::int64_t points_ = 0;
};

}  // namespace

namespace {

void expect_agrees(const Run& expected, Run& whole, Run& split, LoadedKernels::Function function, double tolerance, const std::string& what) {
  whole.call(function, 0, whole.points());
  whole.expect_near(expected, tolerance, what);
  const std::int64_t n = split.points();
  std::int64_t begin = 0;
  for (const std::int64_t end : {n / 7, n / 7, (n + 1) / 2, n - n / 9, n}) {
    split.call(function, begin, end);
    begin = end;
  }
  split.expect_equal_bits(whole, what);
}

void expect_agrees_in_blocks(const Run& expected, Run& one, Run& several, Run& shifted, const LoadedKernels& code, const std::string& name, double tolerance, const std::string& what) {
  const BlockFunction function = code.block(name);
  const std::int64_t points = one.points();
  one.launch(function, 1, 0, points);
  one.expect_near(expected, tolerance, what);
  several.launch(function, plan::blocks_for(code.launch(name), points, 64) + 2, 0, points / 3);
  several.launch(function, 2, points / 3, points);
  several.expect_equal_bits(one, what);
  shifted.launch(function, 2, 0, points);
  shifted.expect_equal_bits(one, what + ", not aligned");
}

}  // namespace

void AgreeingKernels::add(Kernel kernel, AgreeOptions options) {
  kernel.name += "_" + std::to_string(cases_.size());
  cases_.emplace_back(std::move(kernel), std::move(options));
}

void AgreeingKernels::expect(int opt_level) const {
  std::vector<const Kernel*> kernels;
  for (const auto& [kernel, options] : cases_) kernels.push_back(&kernel);
  std::map<std::string, LoadedKernels> code;
  for (const std::string& cpu : runnable_cpus()) code.try_emplace(cpu, compile_shared_object(kernels, {.cpu = cpu, .opt_level = opt_level}));
  const LoadedKernels in_blocks(compile_shared_object(kernels, {.cpu = "x86-64", .opt_level = std::min(opt_level, 1), .form = KernelForm::kBlocks}));
  for (const auto& [kernel, options] : cases_) {
    for (const DimBindings& sizes : options.sizes) {
      std::string with;
      for (const auto& [name, value] : sizes) with += ", " + name + " = " + std::to_string(value);
      Run expected(kernel, options, sizes);
      expected.interpret();
      for (const auto& [cpu, loaded] : code) {
        Run whole(kernel, options, sizes), split(kernel, options, sizes);
        expect_agrees(expected, whole, split, loaded[kernel.name], options.tolerance, kernel.name + " on " + cpu + with);
      }
      Run one(kernel, options, sizes), several(kernel, options, sizes), shifted(kernel, options, sizes, 1);
      expect_agrees_in_blocks(expected, one, several, shifted, in_blocks, kernel.name, options.tolerance, kernel.name + " in blocks" + with);
    }
  }
}

void expect_agrees(const Kernel& kernel, const AgreeOptions& options, int opt_level) {
  AgreeingKernels one;
  one.add(kernel, options);
  one.expect(opt_level);
}

}  // namespace hone
