// Kernels over elements beside memcpy of as many bytes, and the emitter's own functions beside libm's. One thread; elements in the first level cache, in the second and in memory.
//
//   elementwise_bench --benchmark_filter='exp|memcpy'
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

#include "backends/llvm/emit.h"
#include "ir/kernel/compute.h"
#include "ir/parse.h"
#include "runtime/device/code_loader.h"
#include "runtime/device/cpu.h"
#include "runtime/device/host_memory.h"

namespace hone {
namespace {

constexpr std::int64_t kColumns = 64;  // of what is read as a matrix

/// One node over N elements.
struct Case {
  std::string name;
  std::string graph;  ///< `.hir`
  int operands = 1;
  float (*libm)(float) = nullptr;  ///< the same of libm
};

Case elementwise(const std::string& op, float (*libm)(float) = nullptr) {
  return {.name = op, .graph = fmt::format("graph g(input %a: f32[N]) {{\n%1: f32[N] = {}(%a)\noutput \"y\" %1\n}}\n", op), .libm = libm};
}

std::vector<Case> cases() {
  const std::string matrix = fmt::format("f32[N,{}]", kColumns), columns = fmt::format("f32[{},N]", kColumns);
  return {elementwise("relu"),
          {.name = "add", .graph = "graph g(input %a: f32[N], input %b: f32[N]) {\n%1: f32[N] = add(%a, %b)\noutput \"y\" %1\n}\n", .operands = 2},
          {.name = "transpose", .graph = fmt::format("graph g(input %a: {}) {{\n%1: {} = transpose(%a) {{perm=[1,0]}}\noutput \"y\" %1\n}}\n", matrix, columns)},
          elementwise("exp", [](float x) { return std::exp(x); }),
          elementwise("log", [](float x) { return std::log(x); }),
          elementwise("tanh", [](float x) { return std::tanh(x); }),
          elementwise("erf", [](float x) { return std::erf(x); })};
}

/// `tensors` of so many elements, all between 0.5 and 2.5.
std::vector<HostMemory> tensors_of(std::int64_t elements, int tensors) {
  std::vector<HostMemory> memory;
  for (int i = 0; i < tensors; ++i) {
    memory.emplace_back(static_cast<std::size_t>(elements) * sizeof(float), "a tensor");
    auto* const values = reinterpret_cast<float*>(memory.back().data());
    for (std::int64_t k = 0; k < elements; ++k) values[k] = 0.5F + static_cast<float>(k % 1000) * 0.002F;
  }
  return memory;
}

void count(benchmark::State& state, std::int64_t elements, int tensors) {
  state.SetItemsProcessed(state.iterations() * elements);
  state.SetBytesProcessed(state.iterations() * elements * static_cast<std::int64_t>(sizeof(float)) * tensors);
}

void run_kernel(benchmark::State& state, const Case& c) {
  const Graph graph = parse_graph(c.graph, c.name);
  const bool is_matrix = graph.type(graph.inputs()[0].value).shape.size() == 2;
  const std::int64_t elements = state.range(0);
  const DimBindings sizes = {{"N", is_matrix ? elements / kColumns : elements}};
  Kernel kernel = kernel_of(graph, NodeId(0));
  kernel.name = "kernel";
  const Kernel* const kernels[] = {&kernel};
  const LoadedCode code(compile_shared_object(kernels, {.cpu = std::string(to_string(host_cpu_level()))}));
  const auto function = code.find("kernel");
  const std::vector<HostMemory> memory = tensors_of(elements, c.operands + 1);
  std::vector<void*> buffers;
  for (const HostMemory& tensor : memory) buffers.push_back(tensor.data());
  std::vector<std::int64_t> arguments;
  for (const Dim& dim : size_arguments(kernel)) arguments.push_back(dim.evaluate(sizes));
  const std::int64_t points = kernel.outer_size().evaluate(sizes);
  for (auto _ : state) function(buffers.data(), arguments.data(), 0, points);
  count(state, elements, c.operands + 1);
}

void run_libm(benchmark::State& state, float (*function)(float)) {
  const std::vector<HostMemory> memory = tensors_of(state.range(0), 2);
  const auto* const x = reinterpret_cast<const float*>(memory[0].data());
  auto* const y = reinterpret_cast<float*>(memory[1].data());
  for (auto _ : state) {
    for (std::int64_t i = 0; i < state.range(0); ++i) y[i] = function(x[i]);
    benchmark::ClobberMemory();
  }
  count(state, state.range(0), 2);
}

void run_memcpy(benchmark::State& state) {
  const std::vector<HostMemory> memory = tensors_of(state.range(0), 2);
  for (auto _ : state) {
    std::memcpy(memory[1].data(), memory[0].data(), static_cast<std::size_t>(state.range(0)) * sizeof(float));
    benchmark::ClobberMemory();
  }
  count(state, state.range(0), 2);
}

void add_benchmarks() {
  const auto of_sizes = [](benchmark::internal::Benchmark* added) { added->Arg(1 << 12)->Arg(1 << 17)->Arg(1 << 24); };
  of_sizes(benchmark::RegisterBenchmark("memcpy", run_memcpy));
  for (const Case& c : cases()) {
    of_sizes(benchmark::RegisterBenchmark((c.name + "/own").c_str(), [c](benchmark::State& state) { run_kernel(state, c); }));
    if (c.libm != nullptr) of_sizes(benchmark::RegisterBenchmark((c.name + "/libm").c_str(), [c](benchmark::State& state) { run_libm(state, c.libm); }));
  }
}

const int added = (add_benchmarks(), 0);  // before benchmark_main looks for them

}  // namespace
}  // namespace hone
