// Every op over its cases, as a GPU runs it: its kernels in blocks, played by the host, agree with the interpreter, and a GPU's assembler takes them.
#include <gtest/gtest.h>

#include "backends/cuda/ptxas.h"
#include "passes/passes.h"
#include "tests/ops/compiled_nodes.h"
#include "tests/ops/op_cases.h"

namespace hone::test {
namespace {

/// The nodes of all cases.
CompiledNodes all_nodes() {
  CompiledNodes nodes;
  for (const OpCase& c : op_cases()) {
    Graph graph = graph_of(c);
    (void)expand(graph);
    nodes.add(graph, feeds_of(c), case_sizes(), c.name());
  }
  return nodes;
}

TEST(GpuKernels, InBlocksAgreeWithTheInterpreter) {
  CompiledNodes nodes = all_nodes();
  nodes.compile(1, KernelForm::kBlocks);
  nodes.expect_agreement();
}

TEST(GpuKernels, OfEveryOpAssemble) {
  const std::optional<std::string> ptxas = find_ptxas();
  if (not ptxas) GTEST_SKIP() << "no ptxas on PATH or in /usr/local/cuda: NVIDIA's CUDA toolkit has it";
  const CompiledNodes nodes = all_nodes();
  EXPECT_GT(nodes.kernel_count(), 100U);
  EXPECT_FALSE(assemble(*ptxas, nodes.ptx("sm_80"), "sm_90").cubin.empty());
}

}  // namespace
}  // namespace hone::test
