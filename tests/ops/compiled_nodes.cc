#include "tests/ops/compiled_nodes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "ir/op.h"

namespace hone::test {

namespace {

constexpr double kTolerance = 2e-6;  // |difference| <= kTolerance * (1 + |expected|): a few roundings, and the order of sums
constexpr std::size_t kAlignment = 64;

/// Memory aligned as the kernels want it, with a guard behind its end.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes), data_(static_cast<std::byte*>(std::aligned_alloc(kAlignment, (bytes / kAlignment + 2) * kAlignment))) {
    std::memset(data_, 0x5a, (bytes / kAlignment + 2) * kAlignment);
  }
  ~Memory() { std::free(data_); }
  Memory(Memory&& other) noexcept : bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
  Memory& operator=(Memory&&) = delete;

  std::byte* data() const { return data_; }
  bool is_guard_intact() const {
    for (std::size_t i = bytes_; i < bytes_ + kAlignment; ++i)
      if (data_[i] != std::byte{0x5a}) return false;
    return true;
  }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

bool is_close(double expected, double found) {
  if (std::isnan(expected) or std::isnan(found)) return std::isnan(expected) and std::isnan(found);
  return expected == found or std::fabs(expected - found) <= kTolerance * (1 + std::fabs(expected));
}

void expect_close(const Tensor& expected, const Tensor& found, const std::string& what) {
  int shown = 0;
  for (std::int64_t i = 0; i < expected.element_count() and shown < 3; ++i) {
    if (is_float(expected.dtype()) ? is_close(expected.at(i), found.at(i)) : expected.int_at(i) == found.int_at(i)) continue;
    ++shown;
    ADD_FAILURE() << what << ": element " << i << " is " << found.at(i) << ", the interpreter has " << expected.at(i);
  }
}

}  // namespace

void CompiledNodes::add(const Graph& graph, const Feeds& feeds, const DimBindings& sizes, const std::string& name) {
  Interpreter interpreter(graph, Precision::kFloat);
  std::vector<Tensor> values(graph.value_count());
  for (const Input& input : graph.inputs()) {
    const auto fed = feeds.find(input.name);
    values[input.value.index] = (fed == feeds.end() ? *input.data : fed->second).cast(graph.type(input.value).dtype);
  }
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    Call call{name + ", node " + std::string(node.op->name), {}, {}, node.operands.size(), {}, 0};
    for (const ValueId operand : node.operands) call.buffers.push_back(operand.valid() ? values[operand.index] : Tensor());
    const std::vector<Tensor> results = interpreter.run_node(NodeId(i), call.buffers, sizes);
    for (std::size_t k = 0; k < results.size(); ++k) {
      values[node.results[k].index] = results[k];
      call.buffers.push_back(results[k]);
    }
    if (node.op->scalar == nullptr and node.op->compute == nullptr) continue;
    call.kernel = kernels_.add(kernel_of(graph, NodeId(i)));
    for (const Dim& size : call.kernel.sizes) call.sizes.push_back(size.evaluate(sizes));
    call.points = call.kernel.range.evaluate(sizes);
    calls_.push_back(std::move(call));
  }
}

std::vector<const Kernel*> CompiledNodes::kernels() const {
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : kernels_.kernels()) kernels.push_back(&kernel);
  return kernels;
}

void CompiledNodes::compile(int opt_level, KernelForm form) {
  form_ = form;
  code_ = LoadedCode(compile_shared_object(kernels(), {.opt_level = opt_level, .form = form}));
}

std::string CompiledNodes::ptx(const std::string& gpu) const { return compile_ptx(kernels(), {.cpu = gpu}); }

void CompiledNodes::run(const Call& call, std::vector<void*>& buffers, int pieces) const {
  if (form_ == KernelForm::kRange) {
    const KernelFunction function = code_.find(call.kernel.symbol);
    ASSERT_NE(function, nullptr) << call.kernel.symbol;
    const std::int64_t cut = pieces == 1 ? 0 : call.points / 3;
    if (cut > 0) function(buffers.data(), call.sizes.data(), 0, cut);
    return function(buffers.data(), call.sizes.data(), cut, call.points);
  }
  const BlockFunction function = code_.find_in_blocks(call.kernel.symbol);
  ASSERT_NE(function, nullptr) << call.kernel.symbol;
  for (std::int64_t block = pieces; block-- > 0;) function(buffers.data(), call.sizes.data(), 0, call.points, block, pieces);
}

void CompiledNodes::expect_agreement() const {
  for (const Call& call : calls_) expect_agreement(call);
}

void CompiledNodes::expect_agreement(const Call& call) const {
  const auto in_pieces = [&](int pieces) {
    std::vector<Memory> memory;
    std::vector<void*> pointers;
    for (const std::uint32_t i : call.kernel.buffers) {
      memory.emplace_back(call.buffers[i].byte_count());
      pointers.push_back(memory.back().data());
      if (i < call.operand_count and call.buffers[i].byte_count() > 0)
        std::memcpy(pointers.back(), call.buffers[i].bytes().data(), call.buffers[i].byte_count());
    }
    run(call, pointers, pieces);
    std::vector<Tensor> results;
    for (std::size_t k = 0; k < memory.size(); ++k) {
      EXPECT_TRUE(memory[k].is_guard_intact()) << call.name << ": buffer " << k << " was written behind its end";
      const Tensor& like = call.buffers[call.kernel.buffers[k]];
      results.push_back(Tensor::copy(like.dtype(), like.shape(), {memory[k].data(), like.byte_count()}));
    }
    return results;
  };
  const std::vector<Tensor> whole = in_pieces(1), halves = in_pieces(2);
  for (std::size_t k = 0; k < whole.size(); ++k) {
    expect_close(call.buffers[call.kernel.buffers[k]], whole[k], call.name);
    EXPECT_TRUE(std::ranges::equal(whole[k].bytes(), halves[k].bytes())) << call.name << ": the result depends on how the range is split";
  }
}

}  // namespace hone::test
