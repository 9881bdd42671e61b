#include "runtime/device/sim_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>

#include "base/alignment.h"
#include "base/check.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/philox.h"
#include "base/tensor.h"
#include "base/text.h"
#include "runtime/collective/tree_sum.h"
#include "runtime/device/team.h"
#include "runtime/library/arena.h"
#include "runtime/library/call_text.h"

namespace hone {
namespace {

/// So many blocks are enough to see whether their number and order matter.
constexpr std::int64_t kMostBlocks = 6;
constexpr std::chrono::microseconds kSlower = std::chrono::milliseconds(2);
/// Of a product's first factor: every element of the result depends on some of it.
constexpr std::size_t kNansComeThrough = 0;
constexpr std::size_t kKeptReleased = std::size_t{64} << 20;
/// A NaN of every float type, and no likely integer.
constexpr int kPoison = 0xff;

constexpr std::uint32_t number(Stream stream) { return static_cast<std::uint32_t>(stream); }
constexpr std::uint32_t number(Event event) { return static_cast<std::uint32_t>(event); }

}  // namespace

SimOptions sim_options(std::string_view text, int number) {
  SimOptions options{.number = number, .seed = static_cast<std::uint64_t>(number)};
  for (const std::string& item : text.empty() ? std::vector<std::string>() : split(text, ',')) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    constexpr std::uint64_t kNone = UINT64_MAX, kMostAlgorithms = 16;
    const std::uint64_t value = equals == std::string::npos ? kNone : parse_bytes(item.substr(equals + 1)).value_or(kNone);
    const bool is_known = key == "memory" or key == "lost_after" or key == "libraries" or key == "graphs" or key == "epilogues" or (key == "algorithms" and value >= 1 and value <= kMostAlgorithms);
    if (value == kNone or not is_known)
      throw Error(Code::kUsage, fmt::format("{} is no option of the simulated device", quoted(item)), {}, {"HONE_SIM takes memory=BYTES, lost_after=LAUNCHES, libraries=0, graphs=0, epilogues=1 and algorithms=1 to 16, with commas between"});
    if (key == "libraries") options.has_libraries = value != 0;
    else if (key == "graphs") options.makes_graphs = value != 0;
    else if (key == "epilogues") options.has_epilogues = value != 0;
    else if (key == "algorithms") options.algorithms = static_cast<int>(value);
    else (key == "memory" ? options.memory_bytes : options.lost_after) = value;
  }
  return options;
}

SimDevice::SimDevice(SimOptions options) : options_(options) {
  if (options_.memory_bytes == 0) options_.memory_bytes = host_memory_bytes();
}

std::string SimDevice::name() const { return fmt::format("sim:{}", options_.number); }
std::uint64_t SimDevice::free_memory() const { return options_.memory_bytes - std::min(used_, options_.memory_bytes); }

std::byte* SimDevice::allocate(std::size_t bytes, std::string_view what) {
  if (bytes > free_memory())
    throw Error(Code::kMemory, fmt::format("{} takes {}, and {} has {} of {} left", what, human_bytes(bytes), name(), human_bytes(free_memory()), human_bytes(options_.memory_bytes)), {},
                {"take a smaller batch, or --batch auto for the largest that fits", "compile with --memory-limit, so that activations are made again in the backward pass", "give the device more memory: HONE_SIM=memory=BYTES"});
  const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), kTensorAlignment, "device memory");
  HostMemory memory(rounded, what, static_cast<std::size_t>(kDeviceScratchAlignment));
  std::memset(memory.data(), kPoison, rounded);
  std::byte* const place = memory.data();
  order_.allocate(place, rounded);
  used_ += rounded;
  memory_.emplace(place, std::move(memory));
  return place;
}

void SimDevice::release(std::byte* memory) noexcept {
  const auto found = memory_.find(memory);
  try {
    order_.release(memory);
  } catch (const InternalError& error) {
    if (mistake_.empty()) mistake_ = error.what();  // the next synchronize() tells
  }
  if (found == memory_.end()) return;
  used_ -= found->second.size();
  released_bytes_ += found->second.size();
  std::memset(memory, kPoison, found->second.size());
  released_.push_back(std::move(found->second));
  memory_.erase(found);
  for (; released_bytes_ > kKeptReleased; released_.pop_front()) released_bytes_ -= released_.front().size();
}

void SimDevice::load(const plan::Program& program) { code_ = load_code(program); }

const DeviceKernel* SimDevice::find(const std::string& kernel) {
  std::unique_ptr<DeviceKernel>& known = kernels_[kernel];
  if (known != nullptr) return known.get();
  const BlockFunction function = code_.find_in_blocks(kernel);
  const void* shape = code_.find_constant(plan::launch_symbol(kernel));
  if (function == nullptr or shape == nullptr) return nullptr;
  known = std::make_unique<DeviceKernel>(DeviceKernel{kernel, reinterpret_cast<void*>(function), *static_cast<const plan::LaunchShape*>(shape)});
  HONE_CHECK(known->shape.threads > 0 and known->shape.points > 0, "kernel " + kernel + " cannot be launched");
  return known.get();
}

/// What it overwrites of its scratch is all of it, with NaNs: nobody may count on what was there.
class SimDevice::Call final : public DeviceCall {
 public:
  Call(SimDevice& device, const LibraryRow& row, const LibrarySpec& spec, std::chrono::microseconds delay = {}) : device_(device), name_(row.name), scratch_bytes_(device_scratch(row, spec)), delay_(delay) {
    const LibraryOnOneThread one_thread;
    call_ = row.make(spec);
    own_scratch_ = HostMemory(call_->description().scratch_bytes, "a simulated library's scratch");
    for (const auto& operand : spec.operands) operand_bytes_.push_back(operand ? bytes_of(*operand) : 0);
    for (const TensorType& result : spec.results) result_bytes_.push_back(bytes_of(result));
  }

  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  void put(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) override {
    for (const auto* const memory : operands) check_place(memory);
    for (const auto* const memory : results) check_place(memory);
    check_place(scratch, static_cast<std::size_t>(kDeviceScratchAlignment));
    device_.put(stream, [this, stream, operands = std::vector(operands.begin(), operands.end()), results = std::vector(results.begin(), results.end()), scratch] { run(stream, operands, results, scratch); });
  }

 private:
  static std::size_t bytes_of(const TensorType& type) { return static_cast<std::size_t>(checked_element_count(type.shape)) * size_of(type.dtype); }
  void check_place(const std::byte* memory, std::size_t alignment = kLibraryAlignment) const {
    HONE_CHECK(reinterpret_cast<std::uintptr_t>(memory) % alignment == 0, fmt::format("{} is called with memory that does not begin at a multiple of {}", name_, alignment));
  }

  void run(Stream stream, const std::vector<const std::byte*>& operands, const std::vector<std::byte*>& results, std::byte* scratch) {
    ++device_.launches_;
    device_.check_lost();
    device_.order_.begin(number(stream), std::string(name_));
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i] != nullptr) device_.order_.read(operands[i], operand_bytes_[i]);
    for (std::size_t i = 0; i < results.size(); ++i) device_.order_.write(results[i], result_bytes_[i]);
    if (scratch != nullptr) {
      device_.order_.write(scratch, scratch_bytes_);
      std::memset(scratch, kPoison, scratch_bytes_);
    }
    const LibraryOnOneThread one_thread;
    const DenormalsKept as_on_a_gpu;
    const std::vector<const void*> read(operands.begin(), operands.end());
    const std::vector<void*> written(results.begin(), results.end());
    call_->execute(read, written, own_scratch_.data());
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
  }

  SimDevice& device_;
  std::string_view name_;
  std::size_t scratch_bytes_;
  std::chrono::microseconds delay_;
  std::unique_ptr<LibraryCall> call_;
  HostMemory own_scratch_;
  std::vector<std::size_t> operand_bytes_, result_bytes_;
};

std::string SimDevice::why_no_library(const LibraryRow&) const { return options_.has_libraries ? "" : "it is left out (HONE_SIM=libraries=0)"; }
std::string SimDevice::choose_by_timing(const std::string& file) {
  if (options_.algorithms == 1 and not options_.has_epilogues) return "";
  choices_ = std::make_unique<Choices>(Choices::By::kTiming, file);
  return choices_->note();
}

/// As slow as the slowest algorithm.
class SimDevice::Slowed final : public DeviceCall {
 public:
  Slowed(SimDevice& device, DeviceCall& call) : device_(device), call_(call) {}
  std::size_t scratch_bytes() const override { return call_.scratch_bytes(); }
  void put(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) override {
    call_.put(stream, operands, results, scratch);
    device_.put(stream, [this] { std::this_thread::sleep_for(kSlower * device_.options_.algorithms); });
  }

 private:
  SimDevice& device_;
  DeviceCall& call_;
};

std::unique_ptr<DeviceCall> SimDevice::make_faster_call(const LibraryRow& row, const LibrarySpec& spec, DeviceCall& rival) {
  if (choices_ == nullptr or not options_.has_epilogues) return nullptr;
  std::vector<Candidate> candidates;
  candidates.push_back({"together", std::make_unique<Call>(*this, row, spec), kNansComeThrough});
  Slowed slowed(*this, rival);
  return choices_->choose_over(slowed, *this, fmt::format("sim; {}", text_of(row, spec)), spec, std::move(candidates));
}

std::unique_ptr<DeviceCall> SimDevice::make_call(const LibraryRow& row, const LibrarySpec& spec) {
  const auto make = [&](int algorithm) { return std::make_unique<Call>(*this, row, spec, kSlower * (options_.algorithms - 1 - algorithm)); };
  if (choices_ == nullptr) return make(0);
  std::vector<Candidate> candidates;
  for (int i = 0; i < options_.algorithms; ++i) candidates.push_back({fmt::format("algorithm {}", i), make(i)});
  return choices_->choose(*this, fmt::format("sim; {}", text_of(row, spec)), spec, std::move(candidates));
}

class SimDevice::Exchange final : public DeviceCommunicator {
 public:
  Exchange(SimDevice& device, Communicator& replicas) : device_(device), replicas_(replicas) {}

  void all_reduce(Stream stream, std::span<const ExchangedTensor> tensors) override { put(stream, tensors, &Communicator::all_reduce); }
  void reduce_scatter(Stream stream, std::span<const ExchangedTensor> tensors) override { put(stream, tensors, &Communicator::reduce_scatter); }
  void all_gather(Stream stream, std::span<const ExchangedTensor> tensors) override { put(stream, tensors, &Communicator::all_gather); }
  void synchronize(Stream stream) override { device_.synchronize(stream); }

 private:
  using Operation = void (Communicator::*)(std::span<const ExchangedTensor> tensors);
  void put(Stream stream, std::span<const ExchangedTensor> tensors, Operation operation) {
    device_.put(stream, [this, stream, operation, tensors = std::vector(tensors.begin(), tensors.end())] {
      device_.check_lost();
      device_.order_.begin(number(stream), "an exchange");
      for (const ExchangedTensor& tensor : tensors) device_.order_.write(static_cast<const std::byte*>(tensor.data), tensor.bytes());
      (replicas_.*operation)(tensors);
    });
  }

  SimDevice& device_;
  Communicator& replicas_;
};

std::unique_ptr<DeviceCommunicator> SimDevice::connect(Communicator& replicas) { return std::make_unique<Exchange>(*this, replicas); }

int SimDevice::most_summed_terms() const { return std::numeric_limits<int>::max(); }

/// Of the terms it knows of its own; the others are other replicas' to look after.
void SimDevice::sum(Stream stream, DType dtype, std::span<const std::byte* const> terms, RangePiece range, std::span<std::byte* const> sums) {
  check_lost();
  HONE_CHECK(not is_captured(stream), "a sum over replicas is captured, in which the host waits");
  if (range.begin >= range.end) return;
  const std::size_t begin = static_cast<std::size_t>(range.begin) * size_of(dtype), bytes = static_cast<std::size_t>(range.end - range.begin) * size_of(dtype);
  const auto is_own = [this](const std::byte* place) {
    const auto block = memory_.upper_bound(const_cast<std::byte*>(place));
    return block != memory_.begin() and place < std::prev(block)->first + std::prev(block)->second.size();
  };
  order_.begin(number(stream), "a sum over replicas");
  for (const std::byte* const term : terms)
    if (is_own(term)) order_.read(term + begin, bytes);
  for (const std::byte* const sum : sums)
    if (is_own(sum)) order_.write(sum + begin, bytes);
  const std::vector<const void*> read(terms.begin(), terms.end());
  const std::vector<void*> written(sums.begin(), sums.end());
  sum_in_tree(dtype, read, range, written);
}

void SimDevice::copy_from_other(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  check_lost();
  HONE_CHECK(not is_captured(stream), "a copy from another replica is captured, for which the host waits");
  order_.begin(number(stream), "a copy from another replica");
  order_.write(to, bytes);
  if (bytes > 0) std::memcpy(to, from, bytes);
}

Stream SimDevice::make_stream() { return Stream{order_.add_stream()}; }
Event SimDevice::make_event() { return Event{order_.add_event()}; }

bool SimDevice::is_captured(Stream stream) const { return capture_ != nullptr and std::ranges::find(capture_->streams, stream) != capture_->streams.end(); }

void SimDevice::put(Stream stream, Work work) {
  if (is_captured(stream)) capture_->works.push_back(std::move(work));
  else work();
}

void SimDevice::check_lost() const {
  if (options_.lost_after > 0 and launches_ > options_.lost_after)
    throw Error(Code::kDeviceLost, fmt::format("{} was lost", name()), {}, {"what was computed on the device is lost; the last checkpoint is not: go on with --resume"});
}

void SimDevice::refuse_capture(const char* what) const { HONE_CHECK(capture_ == nullptr, fmt::format("{} while a graph is captured", what)); }

void SimDevice::record(Event event, Stream stream) {
  if (is_captured(stream)) captured_events_.insert(event);
  else captured_events_.erase(event);
  put(stream, [this, event, stream] { order_.record(number(event), number(stream)); });
}

void SimDevice::wait(Stream stream, Event event) {
  const bool of_capture = captured_events_.contains(event);
  if (of_capture and not is_captured(stream)) {
    HONE_CHECK(capture_ != nullptr, fmt::format("stream {} waits for an event of a capture that has ended", number(stream)));
    capture_->streams.push_back(stream);  // from here on it is part of the capture
  }
  HONE_CHECK(of_capture or not is_captured(stream), fmt::format("stream {} is captured and waits for an event that is not", number(stream)));
  put(stream, [this, event, stream] { order_.wait(number(stream), number(event)); });
}

void SimDevice::synchronize(Stream stream) {
  check_lost();
  refuse_capture("the host waits for a stream");
  order_.synchronize(number(stream));
  check_departures(stream);
  std::erase_if(arrivals_, [stream](const Arrival& arrival) {
    if (arrival.stream != stream) return false;
    std::memcpy(arrival.to, arrival.bytes.data(), arrival.bytes.size());
    return true;
  });
  HONE_CHECK(mistake_.empty(), std::exchange(mistake_, ""));
}

/// What was copied was what lay there at some time before now: if it has changed, the copy may have seen the one or the other.
void SimDevice::check_departures(Stream stream) {
  std::erase_if(departures_, [&](const Departure& departure) {
    if (departure.stream != stream) return false;
    if (hash_of(std::span(departure.from, departure.bytes)) != departure.hash and mistake_.empty()) mistake_ = "the host changed memory from which a copy to the device was under way";
    return true;
  });
}

void SimDevice::record_time(Event event, Stream stream) {
  put(stream, [this, event, stream] {
    order_.record(number(event), number(stream));
    times_[event] = std::chrono::steady_clock::now();
  });
}

std::optional<std::int64_t> SimDevice::time_between(Event from, Event to) {
  if (not times_.contains(from) or not times_.contains(to) or not order_.has_come(number(from)) or not order_.has_come(number(to))) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(times_[to] - times_[from]).count();
}

std::byte* SimDevice::allocate_pinned(std::size_t bytes) {
  const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), kTensorAlignment, "pinned memory");
  HostMemory memory(rounded, "pinned memory");
  std::byte* const place = memory.data();
  order_.allocate(place, rounded);
  pinned_.emplace(place, std::move(memory));
  return place;
}

void SimDevice::release_pinned(std::byte* memory) noexcept {
  try {
    order_.release(memory);
  } catch (const InternalError& error) {
    if (mistake_.empty()) mistake_ = error.what();
  }
  const auto block = pinned_.find(memory);
  if (block == pinned_.end()) return;
  std::erase_if(departures_, [&](const Departure& departure) { return departure.from >= memory and departure.from < memory + block->second.size(); });
  pinned_.erase(block);
}

bool SimDevice::is_pinned(const std::byte* memory) const {
  auto block = pinned_.upper_bound(const_cast<std::byte*>(memory));
  return block != pinned_.begin() and (--block, memory < block->first + block->second.size());
}

void SimDevice::launch(Stream stream, const Launch& launch) {
  HONE_CHECK(launch.kernel != nullptr and launch.begin < launch.end and launch.bytes.size() == launch.buffers.size(), "a launch of nothing");
  OwnLaunch own{.kernel = launch.kernel,
                .buffers = {launch.buffers.begin(), launch.buffers.end()},
                .bytes = {launch.bytes.begin(), launch.bytes.end()},
                .skipped = {launch.skipped.begin(), launch.skipped.end()},
                .read_only = launch.read_only,
                .sizes = {launch.sizes.begin(), launch.sizes.end()},
                .begin = launch.begin,
                .end = launch.end};
  put(stream, [this, stream, own = std::move(own)] { run(stream, own); });
}

void SimDevice::run(Stream stream, const OwnLaunch& launch) {
  ++launches_;
  check_lost();
  order_.begin(number(stream), launch.kernel->name);
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const auto* memory = static_cast<const std::byte*>(launch.buffers[i]) + (launch.skipped.empty() ? 0 : launch.skipped[i]);
    if (i < launch.read_only) order_.read(memory, launch.bytes[i]);
    else order_.write(memory, launch.bytes[i]);
  }
  const auto function = reinterpret_cast<BlockFunction>(launch.kernel->function);
  const std::int64_t blocks = plan::blocks_for(launch.kernel->shape, launch.end - launch.begin, kMostBlocks);
  const DenormalsKept as_on_a_gpu;
  const auto first = static_cast<std::int64_t>(philox(options_.seed, 0, launches_)[0] % static_cast<std::uint32_t>(blocks));
  for (std::int64_t i = blocks; i-- > 0;) function(launch.buffers.data(), launch.sizes.data(), launch.begin, launch.end, (first + i) % blocks, blocks);
}

void SimDevice::copy_in(Stream stream, std::byte* to, const void* from, std::size_t bytes) {
  check_lost();
  HONE_CHECK(not is_captured(stream), "a copy from the host is captured: its memory may be gone when the graph runs");
  order_.begin(number(stream), "a copy from the host");
  order_.write(to, bytes);
  if (bytes == 0) return;
  std::memcpy(to, from, bytes);
  const auto* const source = static_cast<const std::byte*>(from);
  if (not is_pinned(source)) return;
  order_.read(source, bytes);
  departures_.push_back({.stream = stream, .from = source, .bytes = bytes, .hash = hash_of(std::span(source, bytes))});
}

void SimDevice::copy_out(Stream stream, void* to, const std::byte* from, std::size_t bytes) {
  check_lost();
  HONE_CHECK(not is_captured(stream), "a copy to the host is captured: its memory may be gone when the graph runs");
  order_.begin(number(stream), "a copy to the host");
  order_.read(from, bytes);
  if (bytes == 0) return;
  arrivals_.push_back({stream, to, {from, from + bytes}});
  std::memset(to, kPoison, bytes);
}

void SimDevice::copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  HONE_CHECK(to + bytes <= from or from + bytes <= to, "a copy onto itself");
  put(stream, [this, stream, to, from, bytes] {
    order_.begin(number(stream), "a copy");
    order_.read(from, bytes);
    order_.write(to, bytes);
    if (bytes > 0) std::memcpy(to, from, bytes);
  });
}

void SimDevice::begin_capture(Stream stream) {
  refuse_capture("a capture begins");
  HONE_CHECK(options_.makes_graphs, "a capture on a device that makes no graphs");
  capture_ = std::make_unique<Recorded>();
  capture_->streams.push_back(stream);
}

StepGraph SimDevice::end_capture(Stream stream) {
  HONE_CHECK(capture_ != nullptr and capture_->streams.front() == stream, "the capture that ends did not begin here");
  const StepGraph graph{next_graph_++};
  graphs_.emplace(graph, std::move(*capture_));
  capture_.reset();
  return graph;
}

/// Its other streams go on after what was in this one, and this one after them.
void SimDevice::replay(Stream stream, StepGraph graph) {
  refuse_capture("a graph runs");
  const auto found = graphs_.find(graph);
  HONE_CHECK(found != graphs_.end(), "a graph runs that was forgotten");
  const Recorded& recorded = found->second;
  HONE_CHECK(recorded.streams.front() == stream, "a graph runs in another stream than that which was captured");
  const std::uint32_t fork = order_.add_event();
  order_.record(fork, number(stream));
  for (const Stream other : recorded.streams) order_.wait(number(other), fork);
  for (const Work& work : recorded.works) work();
  for (const Stream other : recorded.streams) {
    order_.record(fork, number(other));
    order_.wait(number(stream), fork);
  }
}

void SimDevice::forget(StepGraph graph) noexcept { graphs_.erase(graph); }

}  // namespace hone
