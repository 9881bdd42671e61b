// A kernel as a flat register program: what the interpreter runs. Every expression has one register; each phase's expressions are
// sorted into levels by the innermost axis they depend on, and a level runs only when its axis moves.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace hone {

/// In which arithmetic a kernel is interpreted.
enum class Precision : std::uint8_t {
  kFloat,   ///< f32 results are rounded to float after every operation (sums and products once, at their end)
  kDouble,  ///< f64 stands for f32 in arithmetic and in storage; types that are storage only remain so
};

/// The element type of the memory that holds a value of type `dtype`.
constexpr DType storage_type(DType dtype, Precision precision) { return dtype == DType::kF32 and precision == Precision::kDouble ? DType::kF64 : dtype; }

class KernelProgram {
 public:
  /// Takes `kernel`, after verify(kernel).
  KernelProgram(Kernel kernel, Precision precision);
  KernelProgram(KernelProgram&&) = default;  // phases point into the kernel: moved, not copied

  const Kernel& kernel() const { return kernel_; }
  /// Runs the outer points begin .. end-1. `buffers`: row-major memory of each kernel buffer in its storage_type; nullptr for one that
  /// is not accessed. `sizes`: values of size_arguments(kernel). An index outside its buffer throws Error kDataRange and reads nothing.
  void run(std::span<void* const> buffers, std::span<const std::int64_t> sizes, std::int64_t begin, std::int64_t end) const;
  /// Number of outer points.
  std::int64_t outer_size(std::span<const std::int64_t> sizes) const;

 private:
  friend class ProgramRun;

  enum class Code : std::uint8_t {
    kReal,
    kInteger,
    kSize,
    kIndex,
    kTemp,
    kLoad,
    kNeg,
    kAdd,
    kSub,
    kMul,
    kSelect,
    kCast,
    kRoundTo,
    kUnary,
    kBinary,
    kCompare,
    kIsNan,
    kIsInf
  };
  struct Instruction {
    Code code;
    ScalarOp op;
    DType type;  ///< of the operands (kLoad: of the buffer's memory)
    DType result;
    bool real = false;                  ///< operands are floats
    bool round = false;                 ///< the result is rounded to float
    std::uint32_t target;               ///< register
    std::uint32_t a = 0, b = 0, c = 0;  ///< registers
    std::uint32_t slot = 0;             ///< of kIndex, kTemp, kLoad, kRoundTo; kSize: number of the argument
    double number = 0;
    std::int64_t integer = 0;
  };
  /// A number, or the value of a size argument.
  struct Extent {
    std::int64_t number = 0;
    std::int32_t argument = -1;
  };
  struct PhaseProgram {
    const Phase* phase;
    /// [0] what no axis changes; [1] once per outer point; [2 + j] when inner axis j moves. Level 1 at least is there.
    std::vector<std::vector<Instruction>> levels;
  };

  Extent extent_of(const Dim& dim, const std::vector<Dim>& arguments) const;
  PhaseProgram compile(const Phase& phase, const std::vector<Dim>& arguments) const;
  Instruction instruction_of(ExprId id, const std::vector<Dim>& arguments) const;

  Kernel kernel_;
  Precision precision_;
  std::size_t argument_count_;
  std::vector<Extent> axes_;
  std::vector<std::vector<Extent>> shapes_;
  std::vector<PhaseProgram> phases_;
};

}  // namespace hone
