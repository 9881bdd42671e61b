#include "runtime/device/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/diag.h"
#include "base/text.h"
#include "runtime/device/nccl_communicator.h"
#include "runtime/device/sum_kernel.h"
#include "runtime/library/call_text.h"

namespace hone {
namespace {

/// Blocks a processor of the GPU is worth: more would only begin later.
constexpr std::int64_t kBlocksPerProcessor = 16;
/// Of f32 in a processor of the GPU, from sm_80 on.
constexpr int kLanes = 128, kFewLanes = 64, kCapabilityOfFewLanes = 80;
/// So many of a library's recommendations are timed.
constexpr int kTriedCalls = 6;

/// Else loading fails for reasons of the device's own.
constexpr cuda::Result kCodeRefused[] = {cuda::kInvalidImage, cuda::kNoBinaryForGpu, cuda::kInvalidPtx, cuda::kNoJitCompiler, cuda::kUnsupportedPtx, cuda::kJitDisabled};

std::vector<std::string> ways_to_memory() {
  return {"take a smaller --batch, or --batch auto", "compile with --memory-limit, so that activations are made again in the backward pass", "nvidia-smi shows who else uses the GPU"};
}

cuda::Address address(const void* memory) { return reinterpret_cast<cuda::Address>(memory); }

/// 90 of "sm_90"; nothing for another name.
std::optional<int> capability_of(std::string_view level) {
  if (not level.starts_with("sm_")) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(level.data() + 3, level.data() + level.size(), number);
  return error == std::errc() and end == level.data() + level.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

const std::pair<std::string, std::vector<std::byte>>* choose_gpu_code(const plan::Program& program, int capability) {
  const std::pair<std::string, std::vector<std::byte>>* best = nullptr;
  int best_level = 0;
  for (const auto& code : program.code) {
    if (code.first == fmt::format("sm_{}.cubin", capability)) return &code;
    const std::optional<int> level = capability_of(code.first);
    if (level and *level <= capability and *level > best_level) best = &code, best_level = *level;
  }
  return best;
}

CudaOptions cuda_options(std::string_view text) {
  CudaOptions options;
  for (const std::string& item : text.empty() ? std::vector<std::string>() : split(text, ',')) {
    if (item == "libraries=0") options.has_libraries = false;
    else if (item == "graphs=0") options.makes_graphs = false;
    else throw Error(Code::kUsage, fmt::format("{} is no option of CUDA devices", quoted(item)), {}, {"HONE_CUDA takes libraries=0, which leaves cuBLASLt and cuDNN out, and graphs=0, which launches every kernel by itself, with commas between"});
  }
  return options;
}

CudaDevice::CudaDevice(const cuda::Library& cuda, int number, CudaOptions options) : cuda_(cuda), number_(number), options_(options) {
  check(cuda_.device_get(&device_, number), "cuDeviceGet");
  capability_ = 10 * attribute(cuda::kComputeMajor) + attribute(cuda::kComputeMinor);
  processors_ = std::max(attribute(cuda::kProcessors), 1);
  most_blocks_ = processors_ * kBlocksPerProcessor;
  check(cuda_.context_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
  calls_ = std::make_unique<CudaCalls>([this](Stream stream) { return (void)here(), handle(stream); },
                                       cuda::Moves{.copy = [this](Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) { copy(stream, to, from, bytes); },
                                                   .fill = [this](Stream stream, std::byte* to, std::uint32_t word, std::size_t words) { check(here().fill(address(to), word, words, handle(stream)), "cuMemsetD32Async"); }});
}

/// Whatever fails now has failed before.
CudaDevice::~CudaDevice() {
  if (context_ == nullptr) return;
  (void)cuda_.context_use(context_);
  choices_.reset();
  calls_.reset();
  for (const auto& [id, graph] : graphs_) (void)cuda_.graph_run_destroy(graph);
  for (const cuda::EventHandle event : events_) (void)cuda_.event_destroy(event);
  for (const cuda::StreamHandle stream : streams_) (void)cuda_.stream_destroy(stream);
  if (module_ != nullptr) (void)cuda_.module_unload(module_);
  for (const auto& [what, sum] : sums_)
    if (sum.module != nullptr) (void)cuda_.module_unload(sum.module);
  (void)cuda_.context_release(device_);
}

void CudaDevice::check(cuda::Result result, const char* call) const {
  if (result == 0) return;
  const std::string said = fmt::format("{} says {}", call, cuda_.text(result));
  if (result == cuda::kOutOfMemory) throw Error(Code::kMemory, fmt::format("{} has no memory left: {}", name(), said), {}, ways_to_memory());
  if (context_ == nullptr)
    throw Error(Code::kDevice, fmt::format("{} cannot be used: {}", name(), said), {}, {"another process may have it to itself: nvidia-smi shows who uses it, and its compute mode", "hone-run devices says what else is here; or use --device cpu"});
  throw Error(Code::kDeviceLost, fmt::format("{}: {}", name(), said), {},
              {"what was computed on the device is lost; the last checkpoint is not: go on with --resume", "with CUDA_LAUNCH_BLOCKING=1 in the environment the call that failed is the one that is named"});
}

int CudaDevice::attribute(int number) const {
  int value = 0;
  check(cuda_.device_attribute(&value, number, device_), "cuDeviceGetAttribute");
  return value;
}

const cuda::Library& CudaDevice::here() const {
  check(cuda_.context_use(context_), "cuCtxSetCurrent");
  return cuda_;
}

std::string CudaDevice::name() const { return fmt::format("cuda:{}", number_); }

std::uint64_t CudaDevice::free_memory() const {
  std::size_t free = 0, total = 0;
  check(here().memory_info(&free, &total), "cuMemGetInfo");
  return free;
}

/// Memory gives two bits a line of its bus and tick, a lane one multiplication and one addition.
std::optional<MachinePeak> CudaDevice::peak() const {
  const double lanes = capability_ == kCapabilityOfFewLanes ? kFewLanes : kLanes, kilo = 1e3;
  const MachinePeak peak = {.bytes_per_second = 2.0 * kilo * attribute(cuda::kMemoryClock) * attribute(cuda::kMemoryBits) / 8, .flops_per_second = 2.0 * kilo * attribute(cuda::kClock) * lanes * processors_};
  return peak.bytes_per_second > 0 and peak.flops_per_second > 0 ? std::optional(peak) : std::nullopt;  // some virtual GPUs do not tell their clocks
}

std::byte* CudaDevice::allocate(std::size_t bytes, std::string_view what) {
  cuda::Address memory = 0;
  const cuda::Result result = here().memory_allocate(&memory, std::max<std::size_t>(bytes, 1));
  if (result == cuda::kOutOfMemory)
    throw Error(Code::kMemory, fmt::format("{} takes {}, and {} has {} left", what, human_bytes(bytes), name(), human_bytes(free_memory())), {}, ways_to_memory());
  check(result, "cuMemAlloc");
  return reinterpret_cast<std::byte*>(memory);
}

void CudaDevice::release(std::byte* memory) noexcept {
  if (cuda_.context_use(context_) == 0) (void)cuda_.memory_free(address(memory));
}

void CudaDevice::load(const plan::Program& program) {
  const auto* code = choose_gpu_code(program, capability_);
  if (code == nullptr) {
    std::vector<std::string> levels;
    for (const auto& [level, bytes] : program.code) levels.push_back(level);
    throw Error(Code::kPlanMismatch, fmt::format("the plan has code for {}, and {} is an sm_{}", levels.empty() ? "no GPU" : printable(join(levels, ", ")), name(), capability_), {},
                {capability_ < cuda::kOldestGpu ? fmt::format("there is code for sm_{} and later only: use --device cpu", cuda::kOldestGpu)
                                                : fmt::format("compile the model with --target cpu,cuda, and without --levels: that gives code for sm_{} and later", cuda::kOldestGpu)});
  }
  std::array<char, 4096> log{};
  std::array<int, 2> options = {cuda::kErrorLog, cuda::kErrorLogBytes};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  std::vector<std::byte> image = code->second;
  image.push_back(std::byte{0});  // PTX is text, and ends so
  const cuda::Result result = here().module_load(&module_, image.data(), static_cast<unsigned>(options.size()), options.data(), values.data());
  if (std::ranges::find(kCodeRefused, result) != std::end(kCodeRefused))
    throw Error(Code::kPlanMismatch, fmt::format("{} cannot load the plan's code for {}: {}", name(), printable(code->first), cuda_.text(result)), {},
                {fmt::format("the driver says {}", printable(log.data(), 1000)), "compile the model again with this version of Hone, or update the driver"});
  check(result, "cuModuleLoadDataEx");
}

const DeviceKernel* CudaDevice::find(const std::string& kernel) {
  std::unique_ptr<DeviceKernel>& known = kernels_[kernel];
  if (known != nullptr) return known.get();
  cuda::Function function = nullptr;
  cuda::Address constant = 0;
  std::size_t bytes = 0;
  if (module_ == nullptr or here().module_function(&function, module_, kernel.c_str()) != 0) return nullptr;
  if (cuda_.module_global(&constant, &bytes, module_, plan::launch_symbol(kernel).c_str()) != 0 or bytes != sizeof(plan::LaunchShape)) return nullptr;
  plan::LaunchShape shape;
  check(cuda_.copy_out_now(&shape, constant, sizeof(shape)), "cuMemcpyDtoH");
  if (shape.threads <= 0 or shape.points <= 0) return nullptr;
  known = std::make_unique<DeviceKernel>(DeviceKernel{kernel, function, shape});
  return known.get();
}

std::string CudaDevice::why_no_library(const LibraryRow& row) const {
  return options_.has_libraries ? CudaCalls::why_not(row.device_library) : "it is left out (HONE_CUDA=libraries=0)";
}

std::string CudaDevice::choose_by_timing(const std::string& file) {
  choices_ = std::make_unique<Choices>(Choices::By::kTiming, file);
  return choices_->note();
}

std::unique_ptr<DeviceCall> CudaDevice::make_call(const LibraryRow& row, const LibrarySpec& spec) {
  (void)here();
  std::vector<Candidate> candidates = calls_->make(row, spec, choices_ == nullptr ? 1 : kTriedCalls);
  if (candidates.empty()) return nullptr;
  if (choices_ == nullptr) return std::move(candidates.front().call);
  return choices_->choose(*this, question_of(row, spec), spec, std::move(candidates));
}

std::unique_ptr<DeviceCall> CudaDevice::make_faster_call(const LibraryRow& row, const LibrarySpec& spec, DeviceCall& rival) {
  if (choices_ == nullptr) return nullptr;
  (void)here();
  return choices_->choose_over(rival, *this, question_of(row, spec), spec, calls_->make(row, spec, kTriedCalls));
}

std::string CudaDevice::question_of(const LibraryRow& row, const LibrarySpec& spec) const {
  std::array<char, 256> model{};
  check(cuda_.device_name(model.data(), static_cast<int>(model.size()) - 1, device_), "cuDeviceGetName");
  return fmt::format("{} sm_{}; {}; {}", model.data(), capability_, CudaCalls::version(row.device_library), text_of(row, spec));
}

/// Its UUID, which no other GPU, nor a part of this one (MIG), has.
std::string CudaDevice::hardware() const {
  cuda::Uuid uuid = {};
  check(cuda_.device_uuid(&uuid, device_), "cuDeviceGetUuid");
  std::string text;
  for (const unsigned char byte : uuid.bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string CudaDevice::why_no_exchange() const {
  std::string why;
  return nccl::library(&why) == nullptr ? "there is no NCCL: " + why : "";
}

std::unique_ptr<DeviceCommunicator> CudaDevice::connect(Communicator& replicas) {
  (void)here();
  return nccl::connect(*nccl::library(nullptr), replicas, {.use = [this](Stream stream) { return (void)here(), handle(stream); }, .is_done = [this](Stream stream) {
                                                             const cuda::Result result = here().stream_query(handle(stream));
                                                             if (result != cuda::kNotReady) check(result, "cuStreamQuery");
                                                             return result == 0;
                                                           }});
}

int CudaDevice::most_summed_terms() const { return cuda::kMostTerms; }

/// Compiled by the driver when it is first wanted.
cuda::Function CudaDevice::sum_function(DType dtype, std::size_t terms, std::size_t sums) {
  Sum& sum = sums_[{dtype, terms, sums}];
  if (sum.function != nullptr) return sum.function;
  const std::string ptx = cuda::sum_ptx(dtype, static_cast<int>(terms), static_cast<int>(sums));
  check(here().module_load(&sum.module, ptx.c_str(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
  check(cuda_.module_function(&sum.function, sum.module, cuda::kSumKernel), "cuModuleGetFunction");
  return sum.function;
}

void CudaDevice::sum(Stream stream, DType dtype, std::span<const std::byte* const> terms, RangePiece range, std::span<std::byte* const> sums) {
  if (range.begin >= range.end) return;
  const cuda::Function function = sum_function(dtype, terms.size(), sums.size());
  std::vector<cuda::Address> places;
  for (const std::byte* const term : terms) places.push_back(address(term));
  for (const std::byte* const sum : sums) places.push_back(address(sum));
  std::int64_t ends[] = {range.begin, range.end};
  std::vector<void*> arguments;
  for (cuda::Address& place : places) arguments.push_back(&place);
  for (std::int64_t& end : ends) arguments.push_back(&end);
  const std::int64_t wanted = (range.end - range.begin + cuda::kSumThreads - 1) / cuda::kSumThreads;
  check(here().launch(function, static_cast<unsigned>(std::min(wanted, most_blocks_)), 1, 1, cuda::kSumThreads, 1, 1, 0, handle(stream), arguments.data(), nullptr), cuda::kSumKernel);
}

Stream CudaDevice::make_stream() {
  cuda::StreamHandle stream = nullptr;
  check(here().stream_create(&stream, cuda::kNonBlockingStream), "cuStreamCreate");
  streams_.push_back(stream);
  return Stream{static_cast<std::uint32_t>(streams_.size() - 1)};
}

Event CudaDevice::make_event(unsigned flags) {
  cuda::EventHandle event = nullptr;
  check(here().event_create(&event, flags), "cuEventCreate");
  events_.push_back(event);
  return Event{static_cast<std::uint32_t>(events_.size() - 1)};
}

void CudaDevice::record(Event event, Stream stream) { check(here().event_record(handle(event), handle(stream)), "cuEventRecord"); }
void CudaDevice::wait(Stream stream, Event event) { check(here().stream_wait(handle(stream), handle(event), 0), "cuStreamWaitEvent"); }
void CudaDevice::synchronize(Stream stream) { check(here().stream_synchronize(handle(stream)), "cuStreamSynchronize"); }

void CudaDevice::record_time(Event event, Stream stream) { check(here().event_record_with(handle(event), handle(stream), is_capturing_ ? cuda::kRecordInGraph : 0), "cuEventRecordWithFlags"); }

std::optional<std::int64_t> CudaDevice::time_between(Event from, Event to) {
  float milliseconds = 0;
  const cuda::Result result = here().event_elapsed(&milliseconds, handle(from), handle(to));
  if (result == cuda::kNotReady) return std::nullopt;
  check(result, "cuEventElapsedTime");
  return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
}

std::byte* CudaDevice::allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  return here().pinned_allocate(&memory, std::max<std::size_t>(bytes, 1), cuda::kPinnedForAll) == 0 ? static_cast<std::byte*>(memory) : nullptr;
}

void CudaDevice::release_pinned(std::byte* memory) noexcept {
  if (cuda_.context_use(context_) == 0) (void)cuda_.pinned_free(memory);
}

/// Each buffer, each size, begin, end: as Signature::kLaunch has them.
void CudaDevice::launch(Stream stream, const Launch& launch) {
  std::int64_t range[] = {launch.begin, launch.end};
  arguments_.clear();
  for (void* const& buffer : launch.buffers) arguments_.push_back(const_cast<void**>(&buffer));
  for (const std::int64_t& size : launch.sizes) arguments_.push_back(const_cast<std::int64_t*>(&size));
  arguments_.push_back(&range[0]);
  arguments_.push_back(&range[1]);
  const DeviceKernel& kernel = *launch.kernel;
  const auto blocks = static_cast<unsigned>(plan::blocks_for(kernel.shape, launch.end - launch.begin, most_blocks_));
  check(here().launch(static_cast<cuda::Function>(kernel.function), blocks, 1, 1, static_cast<unsigned>(kernel.shape.threads), 1, 1, 0, handle(stream), arguments_.data(), nullptr),
        kernel.name.c_str());
}

void CudaDevice::copy_in(Stream stream, std::byte* to, const void* from, std::size_t bytes) {
  if (bytes > 0) check(here().copy_in(address(to), from, bytes, handle(stream)), "cuMemcpyHtoDAsync");
}
void CudaDevice::copy_out(Stream stream, void* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) check(here().copy_out(to, address(from), bytes, handle(stream)), "cuMemcpyDtoHAsync");
}
void CudaDevice::copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) check(here().copy(address(to), address(from), bytes, handle(stream)), "cuMemcpyDtoDAsync");
}

void CudaDevice::begin_capture(Stream stream) {
  check(here().capture_begin(handle(stream), cuda::kRelaxedCapture), "cuStreamBeginCapture");
  is_capturing_ = true;
}

StepGraph CudaDevice::end_capture(Stream stream) {
  cuda::Graph graph = nullptr;
  is_capturing_ = false;
  check(here().capture_end(handle(stream), &graph), "cuStreamEndCapture");
  cuda::GraphRun run = nullptr;
  const cuda::Result result = cuda_.graph_instantiate(&run, graph, 0);
  (void)cuda_.graph_destroy(graph);
  check(result, "cuGraphInstantiate");
  const StepGraph made{next_graph_++};
  graphs_.emplace(made, run);
  return made;
}

void CudaDevice::replay(Stream stream, StepGraph graph) { check(here().graph_launch(graphs_.at(graph), handle(stream)), "cuGraphLaunch"); }

void CudaDevice::forget(StepGraph graph) noexcept {
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return;
  if (cuda_.context_use(context_) == 0) (void)cuda_.graph_run_destroy(found->second);
  graphs_.erase(found);
}

}  // namespace hone
