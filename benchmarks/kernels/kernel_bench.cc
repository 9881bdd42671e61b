// Kernels of the emitter against oneDNN: matmuls in all transposed forms and convolutions with their gradients, at the sizes of the benchmark networks
// and around them. One thread. GFLOPS counts useful operations.
//
//   kernel_bench --benchmark_filter='matmul.*64x256'
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <memory>

#include "backends/llvm/emit.h"
#include "ir/kernel/compute.h"
#include "ir/op.h"
#include "ir/parse.h"
#include "runtime/device/code_loader.h"
#include "runtime/device/host_memory.h"
#include "runtime/device/team.h"
#include "runtime/library/rows.h"

namespace hone {
namespace {

/// One node, and who runs it.
struct Case {
  std::string name;
  std::string graph;   ///< `.hir` of a graph with one node
  std::int64_t batch;  ///< the value of N
  double operations;   ///< multiplications and additions
};

std::vector<std::int64_t> numbers(const Shape& shape, const DimBindings& sizes) { return evaluate(shape, sizes); }

/// Operands and results of the node in memory.
class Tensors {
 public:
  Tensors(const Graph& graph, const DimBindings& sizes) {
    const Node& node = graph.node(NodeId(0));
    for (const ValueId value : node.operands) add(graph.type(value), sizes);
    operands_ = memory_.size();
    for (const ValueId value : node.results) add(graph.type(value), sizes);
  }
  std::vector<void*> all() const {
    std::vector<void*> pointers;
    for (const HostMemory& memory : memory_) pointers.push_back(memory.data());
    return pointers;
  }
  std::size_t operands() const { return operands_; }
  const std::vector<TensorType>& types() const { return types_; }

 private:
  void add(const Type& type, const DimBindings& sizes) {
    types_.push_back({type.dtype, numbers(type.shape, sizes)});
    std::size_t count = 1;
    for (const std::int64_t extent : types_.back().shape) count *= static_cast<std::size_t>(extent);
    memory_.emplace_back(count * sizeof(float), "a tensor");
    std::fill_n(reinterpret_cast<float*>(memory_.back().data()), count, 0.5F);
  }

  std::vector<HostMemory> memory_;
  std::vector<TensorType> types_;
  std::size_t operands_ = 0;
};

void count_operations(benchmark::State& state, double operations) {
  state.counters["GFLOPS"] = benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void run_own(benchmark::State& state, const Case& c, const std::string& cpu) {
  const Graph graph = parse_graph(c.graph, c.name);
  const DimBindings sizes = {{"N", c.batch}};
  Kernel kernel = kernel_of(graph, NodeId(0));
  kernel.name = "kernel";
  const Kernel* const kernels[] = {&kernel};
  const LoadedCode code(compile_shared_object(kernels, {.cpu = cpu}));
  const auto function = code.find("kernel");
  const Tensors tensors(graph, sizes);
  const std::vector<void*> buffers = tensors.all();
  std::vector<std::int64_t> arguments;
  for (const Dim& dim : size_arguments(kernel)) arguments.push_back(dim.evaluate(sizes));
  const std::int64_t points = kernel.outer_size().evaluate(sizes);
  for (auto _ : state) function(buffers.data(), arguments.data(), 0, points);
  count_operations(state, c.operations);
}

void run_library(benchmark::State& state, const Case& c) {
  const Graph graph = parse_graph(c.graph, c.name);
  const DimBindings sizes = {{"N", c.batch}};
  const Node& node = graph.node(NodeId(0));
  const Tensors tensors(graph, sizes);
  LibrarySpec spec;
  for (const auto& [name, dims] : attribute_lists(node.attrs)) spec.attributes[name] = evaluate(dims, sizes);
  for (std::size_t i = 0; i < tensors.types().size(); ++i) {
    if (i < tensors.operands()) spec.operands.emplace_back(tensors.types()[i]);
    else spec.results.push_back(tensors.types()[i]);
  }
  const Team team(1);
  const Team::InUse in_use(team);
  const auto call = find_library_row("onednn." + std::string(node.op->name))->make(spec);
  const HostMemory scratch(std::max<std::size_t>(call->description().scratch_bytes, 64), "scratch");
  const std::vector<void*> all = tensors.all();
  const std::vector<const void*> operands(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(tensors.operands()));
  const std::vector<void*> results(all.begin() + static_cast<std::ptrdiff_t>(tensors.operands()), all.end());
  for (auto _ : state) call->execute(operands, results, scratch.data());
  count_operations(state, c.operations);
}

std::string shape(const std::string& leading, const std::string& a, const std::string& b) { return "f32[" + leading + a + "," + b + "]"; }

/// y[m,n] = a[m,k] b[k,n], or with an operand transposed, under the axes `leading` ("" or "N,4,"). Where `batch` names an extent, it is symbolic.
Case matmul(const std::string& leading, std::int64_t products, std::int64_t m, std::int64_t k, std::int64_t n, const std::string& form, char batch) {
  const auto dim = [&](char name, std::int64_t value) { return name == batch ? std::string("N") : std::to_string(value); };
  const std::string rows = dim('m', m), depth = dim('k', k), columns = dim('n', n);
  const bool ta = form == "ta", tb = form == "tb";
  const std::string a = ta ? shape(leading, depth, rows) : shape(leading, rows, depth),
                    b = tb ? shape(leading, columns, depth) : shape(leading, depth, columns);
  return {.name = fmt::format("matmul/{}{}x{}x{}{}", products == 1 ? "" : fmt::format("{}x", products), m, k, n, form.empty() ? "" : "/" + form),
          .graph = fmt::format("graph g(input %a: {}, input %b: {}) {{\n%1: {} = matmul(%a, %b) {{ta={}, tb={}}}\noutput \"y\" %1\n}}\n", a, b,
                               shape(leading, rows, columns), ta, tb),
          .batch = batch == 'm'   ? m
                   : batch == 'k' ? k
                                  : products / 4,
          .operations = 2.0 * static_cast<double>(products * m * k * n)};
}

struct ConvSizes {
  std::string what;
  std::int64_t batch, inputs, outputs, height, width, window_height, window_width, pad, stride;
};

/// `op` is conv, conv_input_grad or conv_weight_grad.
Case convolution(const std::string& op, const ConvSizes& s, bool channels_last) {
  const std::int64_t oh = (s.height + (s.height > 1 ? 2 * s.pad : 0) - s.window_height) / s.stride + 1,
                     ow = (s.width + 2 * s.pad - s.window_width) / s.stride + 1;
  const bool flat = s.height == 1;
  const auto spatial = [flat](std::int64_t h, std::int64_t w) { return flat ? std::to_string(w) : fmt::format("{},{}", h, w); };
  const auto pair = [flat](std::int64_t value) { return flat ? fmt::format("[{}]", value) : fmt::format("[{0},{0}]", value); };
  const auto activation = [channels_last](std::int64_t channels, const std::string& spatial) {
    return channels_last ? fmt::format("f32[N,{},{}]", spatial, channels) : fmt::format("f32[N,{},{}]", channels, spatial);
  };
  const std::string x = activation(s.inputs, spatial(s.height, s.width)), y = activation(s.outputs, spatial(oh, ow)),
                    w = fmt::format("f32[{},{},{}]", s.outputs, s.inputs, spatial(s.window_height, s.window_width));
  std::string attributes = fmt::format("dilations={}, groups=1, pads_begin={}, pads_end={}, strides={}", pair(1), pair(s.pad), pair(s.pad), pair(s.stride));
  if (op == "conv_input_grad") attributes += fmt::format(", spatial=[{}]", spatial(s.height, s.width));
  if (op == "conv_weight_grad") attributes += fmt::format(", kernel=[{}]", spatial(s.window_height, s.window_width));
  const std::string &a = op == "conv_input_grad" ? y : x, &b = op == "conv_weight_grad" ? y : w, &result = op == "conv" ? y : op == "conv_input_grad" ? x : w;
  if (channels_last) attributes += ", channels_last=true";
  return {.name = fmt::format("{}{}/{}", op, channels_last ? "/channels_last" : "", s.what),
          .graph = fmt::format("graph g(input %a: {}, input %b: {}) {{\n%1: {} = {}(%a, %b) {{{}}}\noutput \"y\" %1\n}}\n", a, b, result, op, attributes),
          .batch = s.batch,
          .operations = 2.0 * static_cast<double>(s.batch * s.outputs * oh * ow * s.inputs * s.window_height * s.window_width)};
}

std::vector<Case> cases() {
  std::vector<Case> list;
  // (batch, inputs, outputs) of dense layers, each with its two gradients
  constexpr std::int64_t kLayers[][3] = {{64, 784, 256},  {64, 256, 10},    {128, 784, 256}, {128, 784, 512},   {128, 512, 512},   {128, 512, 10},
                                         {32, 2336, 46},  {128, 1600, 128}, {16, 8, 32},     {16, 32, 32},      {768, 128, 384},   {768, 128, 128},
                                         {768, 128, 512}, {768, 512, 128},  {768, 128, 65},  {2048, 384, 1152}, {2048, 384, 1536}, {2048, 1536, 384},
                                         {2048, 384, 65}, {32, 128, 512},   {32, 64, 512},   {64, 64, 10}};
  for (const auto& [batch, inputs, outputs] : kLayers) {
    list.push_back(matmul("", 1, batch, inputs, outputs, "", 'm'));
    list.push_back(matmul("", 1, batch, outputs, inputs, "tb", 'm'));
    list.push_back(matmul("", 1, inputs, batch, outputs, "ta", 'k'));
  }
  for (const auto& [heads, steps, width] :
       {std::array<std::int64_t, 3>{48, 64, 32}, std::array<std::int64_t, 3>{48, 256, 64}}) {  // attention: scores, values, gradients
    for (const std::string form : {"", "tb", "ta"}) {
      list.push_back(matmul("N,4,", heads, steps, steps, width, form, ' '));
      list.push_back(matmul("N,4,", heads, steps, width, steps, form, ' '));
    }
  }
  const ConvSizes kConvolutions[] = {
      {"reuters_1", 32, 7, 64, 1, 300, 1, 5, 0, 1},         {"reuters_2", 32, 64, 32, 1, 148, 1, 3, 0, 1},    {"mnist_1", 128, 1, 32, 28, 28, 3, 3, 0, 1},
      {"mnist_2", 128, 32, 64, 13, 13, 3, 3, 0, 1},         {"resnet20_stem", 64, 3, 16, 32, 32, 3, 3, 1, 1}, {"resnet20_1", 64, 16, 16, 32, 32, 3, 3, 1, 1},
      {"resnet20_2", 64, 32, 32, 16, 16, 3, 3, 1, 1},       {"resnet20_3", 64, 64, 64, 8, 8, 3, 3, 1, 1},     {"resnet20_down", 64, 16, 32, 32, 32, 3, 3, 1, 2},
      {"resnet20_project", 64, 16, 32, 32, 32, 1, 1, 0, 2}, {"resnet18_1", 32, 64, 64, 16, 16, 3, 3, 1, 1},   {"resnet18_4", 32, 512, 512, 2, 2, 3, 3, 1, 1},
      {"resnet18_2", 32, 128, 128, 8, 8, 3, 3, 1, 1},       {"resnet18_stem", 32, 3, 64, 64, 64, 7, 7, 3, 2}, {"narrow_8", 64, 8, 8, 32, 32, 3, 3, 1, 1},
      {"narrow_8_small", 64, 8, 8, 8, 8, 3, 3, 1, 1},       {"narrow_4", 64, 4, 4, 32, 32, 3, 3, 1, 1},       {"narrow_24", 64, 24, 24, 32, 32, 3, 3, 1, 1},
  };
  for (const ConvSizes& sizes : kConvolutions)
    for (const std::string op : {"conv", "conv_input_grad", "conv_weight_grad"})
      for (const bool channels_last : {false, true}) list.push_back(convolution(op, sizes, channels_last));
  // 1x1 convolutions of a ResNet-50, a mobile and a small net: what the library makes of them beside the matrix products that they are.
  const ConvSizes kPointwise[] = {
      {"1x1_resnet50_1", 8, 64, 256, 56, 56, 1, 1, 0, 1},  {"1x1_resnet50_2", 8, 512, 128, 28, 28, 1, 1, 0, 1},  {"1x1_resnet50_3", 8, 256, 1024, 14, 14, 1, 1, 0, 1},
      {"1x1_resnet50_4", 8, 2048, 512, 7, 7, 1, 1, 0, 1},  {"1x1_mobile_1", 32, 16, 64, 16, 16, 1, 1, 0, 1},   {"1x1_mobile_2", 32, 72, 24, 8, 8, 1, 1, 0, 1},
      {"1x1_small_1", 64, 16, 16, 32, 32, 1, 1, 0, 1},     {"1x1_small_2", 64, 64, 64, 8, 8, 1, 1, 0, 1},
  };
  for (const ConvSizes& s : kPointwise) {
    for (const std::string op : {"conv", "conv_input_grad", "conv_weight_grad"}) list.push_back(convolution(op, s, true));
    const std::int64_t rows = s.batch * s.height * s.width;
    list.push_back(matmul("", 1, rows, s.inputs, s.outputs, "tb", 'm'));
    list.push_back(matmul("", 1, rows, s.outputs, s.inputs, "", 'm'));
    list.push_back(matmul("", 1, s.outputs, rows, s.inputs, "ta", 'k'));
  }
  return list;
}

void add_benchmarks() {
  for (const Case& c : cases()) {
    benchmark::RegisterBenchmark(fmt::format("{}/own_v3", c.name).c_str(), [c](benchmark::State& state) { run_own(state, c, "x86-64-v3"); });
    if (__builtin_cpu_supports("avx512f") != 0)
      benchmark::RegisterBenchmark(fmt::format("{}/own_v4", c.name).c_str(), [c](benchmark::State& state) { run_own(state, c, "x86-64-v4"); });
    benchmark::RegisterBenchmark(fmt::format("{}/onednn", c.name).c_str(), [c](benchmark::State& state) { run_library(state, c); });
  }
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::add_benchmarks();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
