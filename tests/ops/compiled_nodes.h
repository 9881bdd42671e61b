// Nodes of many graphs, compiled into one shared object and compared one by one with the interpreter.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/kernel_set.h"
#include "backends/llvm/emit.h"
#include "ir/kernel/interpret.h"
#include "runtime/device/code_loader.h"

namespace hone::test {

class CompiledNodes {
 public:
  /// Interprets the graph in float and notes every node that has a kernel, with its operands and results.
  void add(const Graph& graph, const Feeds& feeds, const DimBindings& sizes, const std::string& name);
  /// Compiles the kernels of all nodes, equal ones once.
  void compile(int opt_level = 2, KernelForm form = KernelForm::kRange);
  /// Expects, by EXPECT, that each compiled node gives the interpreter's results, and bit for bit the same in two calls that share its range, or in several blocks.
  void expect_agreement() const;
  /// The kernels of all nodes for a GPU.
  std::string ptx(const std::string& gpu) const;

  std::size_t kernel_count() const { return kernels_.kernels().size(); }

 private:
  struct Call {
    std::string name;  ///< case and op
    KernelCall kernel;
    std::vector<Tensor> buffers;  ///< operands, then the interpreter's results
    std::size_t operand_count;
    std::vector<std::int64_t> sizes;
    std::int64_t points;
  };
  void expect_agreement(const Call& call) const;
  std::vector<const Kernel*> kernels() const;
  /// Does a call in so many pieces or blocks.
  void run(const Call& call, std::vector<void*>& buffers, int pieces) const;

  KernelForm form_ = KernelForm::kRange;
  KernelSet kernels_;
  std::vector<Call> calls_;
  LoadedCode code_;
};

}  // namespace hone::test
