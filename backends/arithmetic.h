// How much arithmetic a kernel does, as sizes: for people who look at it, and ask how fast it could be.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/kernel_set.h"
#include "runtime/plan/plan.h"

namespace hone {

/// Of all points of a kernel. What does not depend on an inner axis is done once for the outer point; indices, guards, conversions and memory are left out.
struct Arithmetic {
  Dim flops = 0;       ///< every operation counts one: a multiply and an add are two
  Dim operations = 0;  ///< in additions, as they take time (cost_model.h): a division 4, an exponential 16
};
Arithmetic arithmetic_of(const Kernel& kernel);

/// The stage of a plan that has the arithmetic of all its kernels: a line each of symbol, flops and operations, in sizes of the kernel; separated by tabs.
inline constexpr const char* kArithmeticStage = "arithmetic";
std::string arithmetic_text(const KernelSet& kernels);

/// Those of a call. Sizes of the kernel that are the call's (`n_elements`) are what it passes for them.
struct CallArithmetic {
  double flops = 0, operations = 0;
};
/// Reads the stage's text. Nothing for a kernel that is not in it, and where the sizes do not say it.
class ArithmeticTable {
 public:
  explicit ArithmeticTable(std::string_view text);
  std::optional<CallArithmetic> of(const plan::KernelStep& step, const DimBindings& sizes) const;

 private:
  struct Row {
    Arithmetic arithmetic;
    std::vector<std::string> arguments;  ///< symbols whose values are the step's `sizes`; "" for one that is no symbol
  };
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace hone
