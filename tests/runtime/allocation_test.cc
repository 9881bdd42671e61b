// After the first step of a size binding nothing of ours allocates; the last eight bindings are kept. Seen by counting malloc itself, and by knowing when oneDNN runs: each of its calls makes lists of its arguments.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <oneapi/dnnl/dnnl.h>

#include "backends/compile.h"
#include "frontend/builder.h"
#include "frontend/onnx/export.h"
#include "frontend/recipe_toml.h"
#include "runtime/data/batches.h"
#include "tests/ops/op_cases.h"
#include "tests/runtime/hand_plan.h"
#include "tests/support/host_level.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HONE_COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HONE_COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef HONE_COUNTS_ALLOCATIONS
#define HONE_COUNTS_ALLOCATIONS 1
#endif

namespace {
std::atomic<bool> counting = false, in_library = false;
std::atomic<std::size_t> allocations = 0, library_allocations = 0, library_calls = 0, largest_of_library = 0;

[[maybe_unused]] void count_allocation(std::size_t bytes) {  // a sanitizer has malloc to itself
  if (not counting.load(std::memory_order_relaxed)) return;
  if (not in_library) {
    ++allocations;
    return;
  }
  ++library_allocations;
  if (bytes > largest_of_library) largest_of_library = bytes;
}
}  // namespace

#if HONE_COUNTS_ALLOCATIONS
// The executable's definitions take the place of glibc's in every library it loads.
extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT: glibc's name
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT
void* __libc_realloc(void*, std::size_t);         // NOLINT
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT

void* malloc(std::size_t bytes) {
  count_allocation(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  count_allocation(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  count_allocation(bytes);
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count_allocation(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
  count_allocation(bytes);
  *result = __libc_memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count, const dnnl_exec_arg_t* arguments) {
  static const auto library = reinterpret_cast<decltype(&dnnl_primitive_execute)>(dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  ++library_calls;
  in_library = true;
  const dnnl_status_t status = library(primitive, stream, count, arguments);
  in_library = false;
  return status;
}
}
#endif

namespace hone {
namespace {

/// What `call` allocates, in any thread, outside of oneDNN.
template <typename Call>
std::size_t allocations_of(Call call) {
  allocations = library_allocations = library_calls = largest_of_library = 0;
  counting = true;
  call();
  counting = false;
  return allocations;
}

class Allocations : public testing::Test {
 protected:
  void SetUp() override {
    if (not HONE_COUNTS_ALLOCATIONS) GTEST_SKIP() << "the sanitizer has its own malloc";
    EXPECT_GT(allocations_of([] { ::operator delete(::operator new(1)); }), 0);
  }
};

plan::Plan kernels_only() {
  const Dim n = Dim::symbol("N");
  EntryBuilder builder("map");
  const std::uint32_t x = builder.feed("x", DType::kF32, {n}), y = builder.arena(DType::kF32, {n}), z = builder.arena(DType::kF32, {n});
  builder.kernel("twice", {x, y}, {}, n, 1'000'000);
  builder.step({plan::CopyStep{y, z}, "copy"});
  builder.kernel("count", {z}, {}, n, 1);
  builder.step({plan::AllReduceStep{{z}, 0}, "all_reduce"});
  builder.result("z", z);
  return hand_plan({builder.build()});
}

TEST_F(Allocations, NoneAfterTheFirstStepOfABinding) {
  Session session(kernels_only(), {.device = "cpu", .threads = 2});
  const Tensor full = Tensor::zeros(DType::kF32, {100'000}), last = Tensor::zeros(DType::kF32, {777});
  const Feeds full_feeds = {{"x", full}}, last_feeds = {{"x", last}};
  EXPECT_GT(allocations_of([&] { session.run("map", full_feeds); }), 0);
  EXPECT_GT(allocations_of([&] { session.run("map", last_feeds); }), 0);
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(allocations_of([&] { session.run("map", full_feeds); }), 0);
    EXPECT_EQ(allocations_of([&] { session.run("map", last_feeds); }), 0);
  }
}

/// A network with what there is: a convolution and a pooling of the library, a convolution and products of our own, loops.
plan::Plan network() {
  nn::Model model("network");
  nn::Value x = nn::relu(nn::conv(model.input("x", {3, 12, 12}), 8, 3));
  x = nn::relu(nn::conv(x, 8, 1));
  x = nn::average_pool(x, 2);
  x = nn::lstm(nn::reshape(x, {25, 8}), 16);
  model.output("y", nn::dense(x, 4));
  const Recipe recipe = resolve(parse_recipe("loss.kind = \"cross_entropy\"\noptimizer.kind = \"adam\"\n", "recipe"));
  return compile({model.graph(), onnx::export_model(model.graph()), "network"}, recipe, {.levels = {.cpu = {test::host_level()}}}).plan;
}

TEST_F(Allocations, OfATrainingStepAreOnlyTheLibrarysArgumentLists) {
  Session session(network(), {.device = "cpu", .threads = 2});
  const Tensor x = Tensor::zeros(DType::kF32, {10, 3, 12, 12}), target = Tensor::zeros(DType::kI64, {10}), rate = Tensor::scalar(0.1);
  const Feeds feeds = {{"x", x}, {"target", target}, {"learning_rate", rate}};
  EXPECT_GT(allocations_of([&] { session.run(plan::kTrainStep, feeds); }), 0);
  for (int step = 0; step < 20; ++step) EXPECT_EQ(allocations_of([&] { session.run(plan::kTrainStep, feeds); }), 0);  // ways of running kernels are tried in the first ones
  EXPECT_GT(library_calls, 2);
  EXPECT_LE(library_allocations, 20 * library_calls);
  EXPECT_LE(largest_of_library, 1024);  // maps from argument to memory
}

/// A case of an op as a plan that predicts.
plan::Plan plan_of(const test::OpCase& op_case) {
  const Graph graph = test::graph_of(op_case);
  return compile({graph, onnx::ModelProto(), op_case.name()}, Recipe{}, {.levels = {.cpu = {test::host_level()}}}).plan;
}

TEST_F(Allocations, LoopsBranchesHostFunctionsAndSizesThatAreReadMakeNone) {
  std::size_t cases = 0;
  for (const test::OpCase& op_case : test::op_cases()) {
    if (op_case.op->host == nullptr and op_case.op->region == Region::kNone and not op_case.op->binds) continue;
    Session session(plan_of(op_case), {.device = "cpu", .threads = 2});
    Feeds feeds;
    const auto tensors = test::feeds_of(op_case);
    for (const plan::Feed& feed : session.entry(plan::kPredict).feeds) feeds.emplace_back(feed.name, tensors.find(feed.name)->second);
    session.run(plan::kPredict, feeds);
    for (int step = 0; step < 20; ++step) EXPECT_EQ(allocations_of([&] { session.run(plan::kPredict, feeds); }), 0) << op_case.name();
    ++cases;
  }
  EXPECT_GT(cases, 40);
}

TEST_F(Allocations, TheLastEightBindingsAreKept) {
  Session session(kernels_only(), {.device = "cpu", .threads = 1});
  const auto allocations_with = [&](std::int64_t n) {
    const Tensor x = Tensor::zeros(DType::kF32, {n});
    const Feeds feeds = {{"x", x}};
    return allocations_of([&] { session.run("map", feeds); });
  };
  for (std::int64_t n = 1; n <= 8; ++n) EXPECT_GT(allocations_with(n), 0);
  for (std::int64_t n = 1; n <= 8; ++n) EXPECT_EQ(allocations_with(n), 0);
  EXPECT_EQ(allocations_with(1), 0);  // so 2 is now the longest unused
  EXPECT_GT(allocations_with(9), 0);
  EXPECT_EQ(allocations_with(1), 0);
  EXPECT_EQ(allocations_with(3), 0);
  EXPECT_GT(allocations_with(2), 0);
}

TEST_F(Allocations, BatchesMakeNoneAfterTheFirstEpochHasBegun) {
  plan::Entry entry;
  entry.feeds = {{"x", plan::Feed::Kind::kModelInput, DType::kF32, {Dim::symbol("N"), 4}, std::nullopt, std::nullopt}};
  std::vector<std::pair<std::string, Array>> arrays;
  arrays.emplace_back("x", Array("x", Tensor::zeros(DType::kI16, {1000, 4})));
  const BoundArrays data(entry, std::move(arrays), {.flag = "--train", .batch_symbol = "N", .pre_batched = false, .scale = {}});
  for (const Ahead ahead : {Ahead::kNever, Ahead::kAlways}) {
    BatchReader batches(data, 64, {.shuffle = true, .buffer = 100}, {.ahead = ahead});
    const auto go_through = [&](std::int64_t epoch) {
      batches.start_epoch(epoch);
      while (batches.next()) continue;
    };
    go_through(0);
    for (const std::int64_t epoch : {1, 2, 3}) EXPECT_EQ(allocations_of([&] { go_through(epoch); }), 0);
  }
}

}  // namespace
}  // namespace hone
