// The cuda driver: NVIDIA's GPUs through the driver library.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/device/choices.h"
#include "runtime/device/cuda_calls.h"
#include "runtime/device/cuda_library.h"
#include "runtime/device/device.h"

namespace hone {

struct CudaOptions {
  bool has_libraries = true;  ///< else programs run their own code in place of calls
  bool makes_graphs = true;   ///< Device::makes_graphs()
};
/// Options from text: "libraries=0,graphs=0". Throws Error kUsage.
CudaOptions cuda_options(std::string_view text);

class CudaDevice final : public Device {
 public:
  /// `cuda` outlives it. Throws Error kDevice, kMemory.
  CudaDevice(const cuda::Library& cuda, int number, CudaOptions options = {});
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string name() const override;
  std::uint64_t free_memory() const override;
  /// By its clocks.
  std::optional<MachinePeak> peak() const override;
  std::byte* allocate(std::size_t bytes, std::string_view what) override;
  void release(std::byte* memory) noexcept override;
  void load(const plan::Program& program) override;
  const DeviceKernel* find(const std::string& kernel) override;
  std::string why_no_library(const LibraryRow& row) const override;
  std::string choose_by_timing(const std::string& file) override;
  std::unique_ptr<DeviceCall> make_call(const LibraryRow& row, const LibrarySpec& spec) override;
  std::unique_ptr<DeviceCall> make_faster_call(const LibraryRow& row, const LibrarySpec& spec, DeviceCall& rival) override;
  std::string hardware() const override;
  std::string why_no_exchange() const override;
  std::unique_ptr<DeviceCommunicator> connect(Communicator& replicas) override;
  int most_summed_terms() const override;
  void sum(Stream stream, DType dtype, std::span<const std::byte* const> terms, RangePiece range, std::span<std::byte* const> sums) override;
  Stream make_stream() override;
  Event make_event() override { return make_event(cuda::kEventWithoutTime); }
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  void synchronize(Stream stream) override;
  Event make_timed_event() override { return make_event(cuda::kEventWithTime); }
  void record_time(Event event, Stream stream) override;
  std::optional<std::int64_t> time_between(Event from, Event to) override;
  std::byte* allocate_pinned(std::size_t bytes) override;
  void release_pinned(std::byte* memory) noexcept override;
  void launch(Stream stream, const Launch& launch) override;
  void copy_in(Stream stream, std::byte* to, const void* from, std::size_t bytes) override;
  void copy_out(Stream stream, void* to, const std::byte* from, std::size_t bytes) override;
  void copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) override;
  bool makes_graphs() const override { return options_.makes_graphs; }
  void begin_capture(Stream stream) override;
  StepGraph end_capture(Stream stream) override;
  void replay(Stream stream, StepGraph graph) override;
  void forget(StepGraph graph) noexcept override;

 private:
  /// All on which it depends how a call is best made.
  std::string question_of(const LibraryRow& row, const LibrarySpec& spec) const;
  cuda::Function sum_function(DType dtype, std::size_t terms, std::size_t sums);
  /// The library, with this device's context current in the calling thread.
  const cuda::Library& here() const;
  /// Throws Error kMemory where the device has none left, kDevice before anything was begun there, else kDeviceLost.
  void check(cuda::Result result, const char* call) const;
  int attribute(int number) const;
  Event make_event(unsigned flags);
  cuda::StreamHandle handle(Stream stream) const { return streams_.at(static_cast<std::size_t>(stream)); }
  cuda::EventHandle handle(Event event) const { return events_.at(static_cast<std::size_t>(event)); }

  const cuda::Library& cuda_;
  const int number_;
  const CudaOptions options_;
  cuda::DeviceNumber device_ = 0;
  cuda::Context context_ = nullptr;
  int capability_ = 0;  ///< 90 for sm_90
  int processors_ = 0;
  std::int64_t most_blocks_ = 0;
  cuda::Module module_ = nullptr;
  struct Sum {
    cuda::Module module = nullptr;
    cuda::Function function = nullptr;
  };
  std::map<std::tuple<DType, std::size_t, std::size_t>, Sum> sums_;  ///< by type, terms and sums
  std::map<std::string, std::unique_ptr<DeviceKernel>> kernels_;
  std::vector<cuda::StreamHandle> streams_;
  std::vector<cuda::EventHandle> events_;
  std::map<StepGraph, cuda::GraphRun> graphs_;
  std::uint32_t next_graph_ = 0;
  bool is_capturing_ = false;
  std::vector<void*> arguments_;  ///< of a launch
  std::unique_ptr<CudaCalls> calls_;
  std::unique_ptr<Choices> choices_;  ///< by timing; null: the libraries' first recommendation is taken
};

/// Which of the program's code a GPU of that compute capability (90 for sm_90) takes: machine code made for just that one, else the PTX of the highest not above it. Null: none.
const std::pair<std::string, std::vector<std::byte>>* choose_gpu_code(const plan::Program& program, int capability);

}  // namespace hone
