// The cuda driver against a library that only writes down what it is told: which calls are made, with what, and what becomes of failures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "base/diag.h"
#include "runtime/device/cuda_device.h"
#include "runtime/device/pinned_memory.h"
#include "runtime/device/sum_kernel.h"

namespace hone {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr cuda::Result kIllegalAddress = 700, kNotFound = 500, kUnavailable = 46;

/// What the library was told. Memory is the host's, and copies are made at once.
struct Told {
  std::vector<std::string> calls;
  std::set<cuda::Address> memory;
  std::size_t left = 4096;
  int streams = 0, events = 0, modules = 0, graphs = 0, contexts = 0;
  cuda::Result next_failure = 0;  ///< of every call from now on, as a broken device's are
  std::string image, launched;
  unsigned grid = 0, block = 0;
  std::vector<std::uint64_t> arguments;  ///< of the last launch, of which the test knows how many there are
  std::size_t argument_count = 0;
  bool capturing = false;
  std::vector<unsigned> event_flags, record_flags;  ///< of each event made, and of each record with flags
  int pinned = 0;
  cuda::Result retain = 0, load = 0, instantiate = 0;  ///< what those calls say
  std::map<int, int> attributes = {{cuda::kComputeMajor, 9}, {cuda::kComputeMinor, 0}};  ///< others are 2
};
Told* told = nullptr;

template <typename Handle>
Handle handle(int number) { return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(0x1000 + number)); }

cuda::Library fake() {
  cuda::Library f;
  f.error_name = [](cuda::Result error, const char** name) { return *name = error == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS" : error == cuda::kInvalidPtx ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR", 0; };
  f.error_string = [](cuda::Result, const char** text) { return *text = "as the driver puts it", 0; };
  f.device_get = [](cuda::DeviceNumber* device, int ordinal) { return *device = ordinal, 0; };
  f.device_attribute = [](int* value, int attribute, cuda::DeviceNumber) { return *value = told->attributes.contains(attribute) ? told->attributes.at(attribute) : 2, 0; };
  f.context_retain = [](cuda::Context* context, cuda::DeviceNumber) { 
    if (told->retain != 0) return told->retain;
    return ++told->contexts, *context = handle<cuda::Context>(0), 0;
  };
  f.context_release = [](cuda::DeviceNumber) { return --told->contexts, 0; };
  f.context_use = [](cuda::Context) { return 0; };
  f.memory_info = [](std::size_t* free, std::size_t* total) { return *free = told->left, *total = 4096, 0; };
  f.memory_allocate = [](cuda::Address* memory, std::size_t bytes) {
    if (bytes > told->left) return cuda::kOutOfMemory;
    *memory = reinterpret_cast<cuda::Address>(std::malloc(bytes));
    told->memory.insert(*memory);
    told->left -= bytes;
    return 0;
  };
  f.memory_free = [](cuda::Address memory) { return std::free(reinterpret_cast<void*>(memory)), told->memory.erase(memory) == 1 ? 0 : 1; };
  f.copy_in = [](cuda::Address to, const void* from, std::size_t bytes, cuda::StreamHandle) { return std::memcpy(reinterpret_cast<void*>(to), from, bytes), told->next_failure; };
  f.copy_out = [](void* to, cuda::Address from, std::size_t bytes, cuda::StreamHandle) { return std::memcpy(to, reinterpret_cast<void*>(from), bytes), told->next_failure; };
  f.copy = [](cuda::Address to, cuda::Address from, std::size_t bytes, cuda::StreamHandle) { return std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes), told->next_failure; };
  f.fill = [](cuda::Address to, unsigned word, std::size_t words, cuda::StreamHandle) { return std::fill_n(reinterpret_cast<unsigned*>(to), words, word), told->next_failure; };
  f.copy_out_now = [](void* to, cuda::Address from, std::size_t bytes) { return std::memcpy(to, reinterpret_cast<void*>(from), bytes), 0; };
  f.module_load = [](cuda::Module* module, const void* image, unsigned count, int* options, void** values) {
    told->image = static_cast<const char*>(image);
    if (told->image == "bad") {
      for (unsigned i = 0; i < count; ++i)
        if (options[i] == cuda::kErrorLog) std::strcpy(static_cast<char*>(values[i]), "ptxas fatal: line 7");
      return cuda::kInvalidPtx;
    }
    if (told->load != 0) return told->load;
    return ++told->modules, *module = handle<cuda::Module>(0), 0;
  };
  f.module_unload = [](cuda::Module) { return --told->modules, 0; };
  f.module_function = [](cuda::Function* function, cuda::Module, const char* name) { return std::string(name) == "k" or std::string(name) == cuda::kSumKernel ? (*function = handle<cuda::Function>(7), 0) : kNotFound; };
  f.module_global = [](cuda::Address* memory, std::size_t* bytes, cuda::Module, const char* name) {
    static const plan::LaunchShape shape = {.threads = 128, .points = 10};
    if (std::string(name) != "k_launch") return kNotFound;
    return *memory = reinterpret_cast<cuda::Address>(&shape), *bytes = sizeof(shape), 0;
  };
  f.launch = [](cuda::Function, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned, unsigned, cuda::StreamHandle, void** arguments, void**) {
    told->grid = grid, told->block = block;
    told->arguments.clear();
    for (std::size_t i = 0; i < told->argument_count; ++i) told->arguments.push_back(*static_cast<std::uint64_t*>(arguments[i]));
    return told->next_failure;
  };
  f.stream_create = [](cuda::StreamHandle* stream, unsigned) { return *stream = handle<cuda::StreamHandle>(++told->streams), 0; };
  f.stream_destroy = [](cuda::StreamHandle) { return --told->streams, 0; };
  f.stream_synchronize = [](cuda::StreamHandle) { return told->next_failure; };
  f.stream_query = [](cuda::StreamHandle) { return told->next_failure; };
  f.device_uuid = [](cuda::Uuid* uuid, cuda::DeviceNumber device) { return *uuid = {}, uuid->bytes[15] = static_cast<unsigned char>(device + 10), 0; };
  f.stream_wait = [](cuda::StreamHandle, cuda::EventHandle, unsigned) { return told->next_failure; };
  f.pinned_allocate = [](void** memory, std::size_t bytes, unsigned flags) {
    if (bytes > 4096) return cuda::kOutOfMemory;
    EXPECT_EQ(flags, cuda::kPinnedForAll);
    return ++told->pinned, *memory = std::malloc(bytes), 0;
  };
  f.pinned_free = [](void* memory) { return --told->pinned, std::free(memory), 0; };
  f.event_record_with = [](cuda::EventHandle, cuda::StreamHandle, unsigned flags) { return told->record_flags.push_back(flags), told->next_failure; };
  f.event_elapsed = [](float* milliseconds, cuda::EventHandle from, cuda::EventHandle to) {
    *milliseconds = 0.25F * static_cast<float>(reinterpret_cast<std::intptr_t>(to) - reinterpret_cast<std::intptr_t>(from));
    return told->next_failure;
  };
  f.event_create = [](cuda::EventHandle* event, unsigned flags) { told->event_flags.push_back(flags); return *event = handle<cuda::EventHandle>(++told->events), 0; };
  f.event_destroy = [](cuda::EventHandle) { return --told->events, 0; };
  f.event_record = [](cuda::EventHandle, cuda::StreamHandle) { return told->next_failure; };
  f.capture_begin = [](cuda::StreamHandle, int) { return told->capturing = true, 0; };
  f.capture_end = [](cuda::StreamHandle, cuda::Graph* graph) { return told->capturing = false, *graph = handle<cuda::Graph>(0), 0; };
  f.graph_instantiate = [](cuda::GraphRun* run, cuda::Graph, unsigned long long) { 
    if (told->instantiate != 0) return told->instantiate;
    return *run = handle<cuda::GraphRun>(++told->graphs), 0;
  };
  f.graph_destroy = [](cuda::Graph) { return 0; };
  f.graph_launch = [](cuda::GraphRun, cuda::StreamHandle) { return told->calls.emplace_back("graph"), told->next_failure; };
  f.graph_run_destroy = [](cuda::GraphRun) { return --told->graphs, 0; };
  return f;
}

class CudaDeviceTest : public testing::Test {
 protected:
  CudaDeviceTest() { told = &told_; }
  ~CudaDeviceTest() override { told = nullptr; }

  static plan::Program program(const std::string& code) {
    plan::Program program;
    const auto bytes = std::as_bytes(std::span(code));
    program.code.emplace_back("sm_80", std::vector<std::byte>(bytes.begin(), bytes.end()));
    return program;
  }
  template <typename Action>
  static Diag error_of(Action action) {
    try {
      action();
    } catch (const Error& error) { return error.diags().front(); }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }

  Told told_;
  const cuda::Library library_ = fake();
};

/// One kernel for a type and a number of terms, whichever tensors they are.
TEST_F(CudaDeviceTest, AddsUpWhatReplicasThatShareItHave) {
  {
    CudaDevice device(library_, 0);
    EXPECT_GE(device.most_summed_terms(), 8);
    std::byte *a = device.allocate(64, "a"), *b = device.allocate(64, "b");
    const Stream stream = device.make_stream();
    const std::byte* const terms[] = {a, b};
    std::byte* const sums[] = {a, b};
    told_.argument_count = 6;
    const auto address = [](const std::byte* memory) { return reinterpret_cast<std::uintptr_t>(memory); };
    device.sum(stream, DType::kF32, terms, {3, 1000}, sums);
    EXPECT_THAT(told_.arguments, ElementsAre(address(a), address(b), address(a), address(b), 3, 1000));
    EXPECT_EQ(told_.block, cuda::kSumThreads);
    EXPECT_EQ(told_.grid, 4U);
    EXPECT_EQ(told_.image, cuda::sum_ptx(DType::kF32, 2, 2));
    device.sum(stream, DType::kF32, terms, {0, 8}, sums);
    EXPECT_EQ(told_.modules, 1);
    told_.argument_count = 5;
    device.sum(stream, DType::kBF16, terms, {0, 8}, {sums, 1});
    EXPECT_THAT(told_.arguments, ElementsAre(address(a), address(b), address(a), 0, 8));
    EXPECT_EQ(told_.modules, 2);
    told_.grid = 0;
    device.sum(stream, DType::kF32, terms, {4, 4}, sums);
    EXPECT_EQ(told_.grid, 0U) << "nothing to add up";
    device.release(a);
    device.release(b);
  }
  EXPECT_EQ(told_.modules, 0);
}

TEST_F(CudaDeviceTest, LaunchesWithAddressesSizesAndRange) {
  CudaDevice device(library_, 0);
  device.load(program("text"));
  EXPECT_EQ(told_.image, "text");
  const DeviceKernel* kernel = device.find("k");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(device.find("other"), nullptr);
  std::byte *a = device.allocate(64, "a"), *b = device.allocate(64, "b");
  void* const buffers[] = {a, b};
  const std::size_t bytes[] = {64, 64};
  const std::int64_t sizes[] = {42};
  told_.argument_count = 5;
  const Stream stream = device.make_stream();
  device.launch(stream, {.kernel = kernel, .buffers = buffers, .bytes = bytes, .read_only = 1, .sizes = sizes, .begin = 3, .end = 38});
  EXPECT_THAT(told_.arguments, ElementsAre(reinterpret_cast<std::uintptr_t>(a), reinterpret_cast<std::uintptr_t>(b), 42, 3, 38));
  EXPECT_EQ(told_.grid, 4U) << "35 points, 10 for a block";
  EXPECT_EQ(told_.block, 128U);
  device.launch(stream, {.kernel = kernel, .buffers = buffers, .bytes = bytes, .read_only = 1, .sizes = sizes, .begin = 0, .end = 1 << 30});
  EXPECT_EQ(told_.grid, 32U) << "no more blocks than two processors have use for";
  device.release(a);
  device.release(b);
}

TEST_F(CudaDeviceTest, CopiesThereAndBack) {
  CudaDevice device(library_, 0);
  const Stream stream = device.make_stream();
  const std::vector<int> sent = {1, 2, 3, 4};
  std::vector<int> received(4);
  std::byte *a = device.allocate(16, "a"), *b = device.allocate(16, "b");
  device.copy_in(stream, a, sent.data(), 16);
  device.copy(stream, b, a, 16);
  device.copy_out(stream, received.data(), b, 16);
  device.synchronize(stream);
  EXPECT_EQ(received, sent);
  device.release(a);
  device.release(b);
  EXPECT_TRUE(told_.memory.empty());
}

TEST_F(CudaDeviceTest, TimesAreTakenByEventsThatReplaysRecordAnew) {
  CudaDevice device(library_, 0);
  const Stream stream = device.make_stream();
  const Event from = device.make_timed_event(), to = device.make_timed_event();
  (void)device.make_event();
  EXPECT_THAT(told_.event_flags, ElementsAre(cuda::kEventWithTime, cuda::kEventWithTime, cuda::kEventWithoutTime));
  device.record_time(from, stream);
  device.begin_capture(stream);
  device.record_time(to, stream);
  (void)device.end_capture(stream);
  device.record_time(to, stream);
  EXPECT_THAT(told_.record_flags, ElementsAre(0U, cuda::kRecordInGraph, 0U)) << "the library refuses the flag outside of a capture";
  EXPECT_EQ(device.time_between(from, to), 250'000) << "in nanoseconds";
  EXPECT_EQ(device.time_between(to, from), -250'000);
  told_.next_failure = cuda::kNotReady;
  EXPECT_EQ(device.time_between(from, to), std::nullopt);
  told_.next_failure = kIllegalAddress;
  EXPECT_EQ(error_of([&] { (void)device.time_between(from, to); }).code, Code::kDeviceLost);
}

TEST_F(CudaDeviceTest, PinnedMemoryIsLeftOutWhereThereIsNone) {
  CudaDevice device(library_, 0);
  {
    const PinnedMemory pinned(&device, 4096, "a batch"), plain(&device, 4097, "a batch");
    std::memset(pinned.data(), 1, 4096);
    std::memset(plain.data(), 1, 4097);
    EXPECT_EQ(told_.pinned, 1);
  }
  EXPECT_EQ(told_.pinned, 0);
  const PinnedMemory of_host(nullptr, 64, "a batch");
  EXPECT_NE(of_host.data(), nullptr);
}

/// An H100's clocks: its data sheet says 3.35 TB/s and 67 TFLOP/s.
TEST_F(CudaDeviceTest, ItsPeakFollowsFromItsClocks) {
  told_.attributes.insert({{cuda::kProcessors, 132}, {cuda::kClock, 1'980'000}, {cuda::kMemoryClock, 2'619'000}, {cuda::kMemoryBits, 5120}});
  const auto peak = CudaDevice(library_, 0).peak();
  ASSERT_TRUE(peak);
  EXPECT_NEAR(peak->bytes_per_second, 3.35e12, 0.01e12);
  EXPECT_NEAR(peak->flops_per_second, 67e12, 0.5e12);
  told_.attributes[cuda::kMemoryClock] = 0;
  EXPECT_FALSE(CudaDevice(library_, 0).peak()) << "it does not tell";
}

TEST_F(CudaDeviceTest, IsToldApartByItsUuid) {
  EXPECT_EQ(CudaDevice(library_, 0).hardware(), "0000000000000000000000000000000a");
  EXPECT_NE(CudaDevice(library_, 1).hardware(), CudaDevice(library_, 0).hardware());
}

TEST_F(CudaDeviceTest, ALimitIsKeptByWhatASessionTakes) {
  CudaDevice device(library_, 0);
  device.limit_memory(1024);
  EXPECT_EQ(device.available_memory(), 1024U);
  {
    const DeviceMemory most(device, 900, "weights");
    EXPECT_EQ(device.available_memory(), 124U);
    const Diag diag = error_of([&] { (void)DeviceMemory(device, 200, "the memory for one batch"); });
    EXPECT_EQ(diag.code, Code::kMemory);
    EXPECT_THAT(diag.message, AllOf(HasSubstr("the memory for one batch takes 200 B"), HasSubstr("1 KiB"), HasSubstr("cuda:0"), HasSubstr("900 B")));
    EXPECT_EQ(diag.notes.size(), 3U);
  }
  EXPECT_EQ(device.available_memory(), 1024U);
  device.limit_memory(1 << 20);
  EXPECT_EQ(device.available_memory(), told_.left) << "what the device has";
}

TEST_F(CudaDeviceTest, OptionsLeaveOutLibrariesAndGraphs) {
  EXPECT_TRUE(cuda_options("").has_libraries and cuda_options("").makes_graphs);
  EXPECT_FALSE(cuda_options("libraries=0").has_libraries);
  const CudaOptions both = cuda_options("libraries=0,graphs=0");
  EXPECT_FALSE(both.has_libraries or both.makes_graphs);
  EXPECT_FALSE(CudaDevice(library_, 0, both).makes_graphs());
  EXPECT_TRUE(CudaDevice(library_, 0).makes_graphs());
  const Diag wrong = error_of([] { (void)cuda_options("graphs=1"); });
  EXPECT_EQ(wrong.code, Code::kUsage);
  EXPECT_THAT(wrong.notes.front(), AllOf(HasSubstr("HONE_CUDA takes"), HasSubstr("graphs=0")));
}

TEST_F(CudaDeviceTest, GivesBackAllThatItTook) {
  {
    CudaDevice device(library_, 0);
    device.load(program("text"));
    const Stream stream = device.make_stream();
    device.record(device.make_event(), stream);
    device.begin_capture(stream);
    const StepGraph first = device.end_capture(stream);
    device.begin_capture(stream);
    (void)device.end_capture(stream);
    device.replay(stream, first);
    device.forget(first);
    device.forget(first);
    EXPECT_EQ(told_.graphs, 1);
    EXPECT_EQ(told_.calls.size(), 1U);
  }
  EXPECT_EQ(told_.graphs + told_.streams + told_.events + told_.modules + told_.contexts, 0);
}

TEST_F(CudaDeviceTest, MemoryThatIsNotThereIsToldWithThreeWaysOut) {
  CudaDevice device(library_, 1);
  const Diag diag = error_of([&] { (void)device.allocate(8192, "the memory for one batch"); });
  EXPECT_EQ(diag.code, Code::kMemory);
  EXPECT_THAT(diag.message, AllOf(HasSubstr("the memory for one batch takes 8 KiB"), HasSubstr("cuda:1 has 4 KiB left")));
  EXPECT_EQ(diag.notes.size(), 3U);
}

TEST_F(CudaDeviceTest, CodeThatTheDriverRefusesIsToldInItsWords) {
  CudaDevice device(library_, 0);
  const Diag diag = error_of([&] { device.load(program("bad")); });
  EXPECT_EQ(diag.code, Code::kPlanMismatch);
  EXPECT_THAT(diag.message, AllOf(HasSubstr("sm_80"), HasSubstr("CUDA_ERROR_INVALID_PTX")));
  EXPECT_THAT(diag.notes.front(), HasSubstr("ptxas fatal: line 7"));
  plan::Program none;
  EXPECT_THAT(error_of([&] { device.load(none); }).notes.front(), HasSubstr("--target cpu,cuda, and without --levels"));
  told_.attributes[cuda::kComputeMajor] = 7;
  EXPECT_THAT(error_of([&] { CudaDevice(library_, 0).load(program("text")); }).notes.front(), HasSubstr("--device cpu")) << "the compiler has nothing for it";
}

/// Nothing is lost, and the code is as good as it was.
TEST_F(CudaDeviceTest, MemoryThatACallDoesNotFindIsNoLostDevice) {
  CudaDevice device(library_, 1);
  told_.load = cuda::kOutOfMemory;
  EXPECT_EQ(error_of([&] { device.load(program("text")); }).code, Code::kMemory);
  told_.instantiate = cuda::kOutOfMemory;
  const Stream stream = device.make_stream();
  device.begin_capture(stream);
  const Diag diag = error_of([&] { (void)device.end_capture(stream); });
  EXPECT_EQ(diag.code, Code::kMemory);
  EXPECT_THAT(diag.message, AllOf(HasSubstr("cuda:1 has no memory left"), HasSubstr("cuGraphInstantiate")));
  EXPECT_EQ(diag.notes.size(), 3U);
}

TEST_F(CudaDeviceTest, LoadingOnABrokenDeviceIsNotThePlansFault) {
  CudaDevice device(library_, 0);
  told_.load = kIllegalAddress;
  EXPECT_EQ(error_of([&] { device.load(program("text")); }).code, Code::kDeviceLost);
}

/// Before anything ran nothing can be lost.
TEST_F(CudaDeviceTest, ADeviceThatAnotherProcessHasIsRefused) {
  told_.retain = kUnavailable;
  const Diag diag = error_of([&] { CudaDevice(library_, 0); });
  EXPECT_EQ(diag.code, Code::kDevice);
  EXPECT_THAT(diag.message, AllOf(HasSubstr("cuda:0 cannot be used"), HasSubstr("cuDevicePrimaryCtxRetain")));
  EXPECT_THAT(diag.notes.front(), HasSubstr("nvidia-smi"));
  told_.retain = cuda::kOutOfMemory;
  EXPECT_EQ(error_of([&] { CudaDevice(library_, 0); }).code, Code::kMemory);
}

TEST_F(CudaDeviceTest, ADeviceThatBreaksIsAnErrorOfTheCallThatFindsIt) {
  CudaDevice device(library_, 0);
  const Stream stream = device.make_stream();
  told_.next_failure = kIllegalAddress;
  const Diag diag = error_of([&] { device.synchronize(stream); });
  EXPECT_EQ(diag.code, Code::kDeviceLost);
  EXPECT_THAT(diag.message, AllOf(HasSubstr("cuda:0"), HasSubstr("cuStreamSynchronize"), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"), HasSubstr("as the driver puts it")));
  EXPECT_THAT(diag.notes.front(), HasSubstr("checkpoint"));
}

}  // namespace
}  // namespace hone
