#include "tests/runtime/device_conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/diag.h"
#include "runtime/collective/tree_sum.h"
#include "runtime/library/arena.h"
#include "runtime/library/rows.h"
#include "tests/runtime/device_program.h"

namespace hone::test {

DeviceBench::DeviceBench(std::unique_ptr<Device> of, std::string target_name, const plan::Plan& its_plan)
    : owned(std::move(of)),
      target(std::move(target_name)),
      plan(its_plan),
      first(device.make_stream()),
      second(device.make_stream()),
      event(device.make_event()),
      a(device.allocate(kBytes, "a")),
      b(device.allocate(kBytes, "b")),
      c(device.allocate(kBytes, "c")) {
  device.copy_in(first, a, sevens.data(), kBytes);
  device.synchronize(first);
}

DeviceBench::~DeviceBench() {
  for (std::byte* const memory : {a, b, c}) device.release(memory);
}

std::vector<std::byte> DeviceBench::content(Stream stream, const std::byte* memory, std::size_t bytes) {
  std::vector<std::byte> found(bytes);
  device.copy_out(stream, found.data(), memory, bytes);
  device.synchronize(stream);
  return found;
}

std::string DeviceBench::holds(Stream stream, const std::byte* memory, std::span<const std::byte> bytes, std::string_view what) {
  const std::vector<std::byte> found = content(stream, memory, bytes.size());
  const auto differs = std::ranges::mismatch(found, bytes);
  if (differs.in1 == found.end()) return "";
  return fmt::format("{}: byte {} is {}, and must be {}", what, differs.in1 - found.begin(), std::to_integer<int>(*differs.in1), std::to_integer<int>(*differs.in2));
}

namespace {

constexpr std::size_t kBytes = DeviceBench::kBytes;

/// The first that is not "".
std::string first_of(std::initializer_list<std::string> problems) {
  for (const std::string& problem : problems)
    if (not problem.empty()) return problem;
  return "";
}

template <typename Action>
std::string expect_code(Code code, Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.diags().front().code == code ? "" : fmt::format("another error than was expected: {}", error.what());
  }
  return "nothing was thrown";
}

std::string has_a_name(DeviceBench& t) {
  if (not t.device.name().starts_with(t.target + ":")) return "it is called " + t.device.name();
  return t.device.hardware().empty() ? "nothing tells its hardware apart" : "";
}

std::string memory_is_aligned(DeviceBench& t) {
  std::vector<std::byte*> blocks;
  for (const std::size_t bytes : {0, 1, 255, 4097, 1 << 20}) blocks.push_back(t.device.allocate(bytes, "a block"));
  std::string problem;
  for (std::byte* const block : blocks) {
    if (reinterpret_cast<std::uintptr_t>(block) % static_cast<std::uintptr_t>(kDeviceScratchAlignment) != 0) problem = "a block begins at no multiple of the alignment";
    if (std::ranges::count(blocks, block) != 1) problem = "two blocks begin at one place";
  }
  for (std::byte* const block : blocks) t.device.release(block);
  return problem;
}

std::string too_much_memory_is_refused(DeviceBench& t) {
  const std::size_t too_much = t.device.free_memory() + (std::size_t{1} << 30);
  const std::string problem = expect_code(Code::kMemory, [&] { (void)t.device.allocate(too_much, "too much"); });
  std::byte* const little = t.device.allocate(kBytes, "a little");  // it goes on
  t.device.copy(t.first, little, t.a, kBytes);
  const std::string after = t.holds(t.first, little, t.sevens, "after a refusal");
  t.device.release(little);
  return first_of({problem, after});
}

std::string a_limit_is_kept(DeviceBench& t) {
  t.device.limit_memory(4096);
  if (t.device.available_memory() != 4096) return fmt::format("{} of 4096 bytes are available", t.device.available_memory());
  const std::string problem = expect_code(Code::kMemory, [&] { (void)DeviceMemory(t.device, 4097, "more than that"); });
  const DeviceMemory all(t.device, 4096, "all of it");
  return first_of({problem, t.device.available_memory() == 0 ? "" : "what was taken is still available"});
}

std::string copies_go_there_and_back(DeviceBench& t) {
  std::vector<std::byte> sent(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<std::byte>(i * 131 + i / 257);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{4099}, kBytes}) {
    const std::span<const std::byte> part(sent.data(), bytes);
    t.device.copy_in(t.first, t.b, sent.data(), bytes);
    t.device.copy(t.first, t.c, t.b, bytes);
    if (std::string problem = t.holds(t.first, t.c, part, fmt::format("{} bytes", bytes)); not problem.empty()) return problem;
  }
  return "";
}

std::string parts_of_a_block_are_their_own(DeviceBench& t) {
  t.device.copy_in(t.first, t.b, t.nines.data(), kBytes);
  t.device.synchronize(t.first);
  t.device.copy(t.first, t.b, t.a, kBytes / 4);
  t.device.copy(t.second, t.b + kBytes / 2, t.a, kBytes / 2);
  t.device.synchronize(t.first);
  t.device.synchronize(t.second);
  std::vector<std::byte> expected = t.sevens;
  std::fill(expected.begin() + kBytes / 4, expected.begin() + kBytes / 2, std::byte{9});
  return t.holds(t.first, t.b, expected, "two copies into one block");
}

/// Often, so that a device that orders by luck has none in the end.
std::string events_order_streams(DeviceBench& t) {
  const Event read = t.device.make_event();
  std::vector<std::vector<std::byte>> sent;
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) sent.emplace_back(kBytes, static_cast<std::byte>(round));
  for (int round = 0; round < kRounds; ++round) {
    if (round > 0) t.device.wait(t.first, read);
    t.device.copy_in(t.first, t.b, sent[static_cast<std::size_t>(round)].data(), kBytes);
    t.device.record(t.event, t.first);
    t.device.wait(t.second, t.event);
    t.device.copy(t.second, t.c, t.b, kBytes);
    t.device.record(read, t.second);
    if (std::string problem = t.holds(t.second, t.c, sent[static_cast<std::size_t>(round)], fmt::format("round {}", round)); not problem.empty()) return problem;
  }
  t.device.synchronize(t.first);
  return "";
}

std::string the_host_orders_streams(DeviceBench& t) {
  t.device.copy(t.first, t.b, t.a, kBytes);
  t.device.synchronize(t.first);
  t.device.copy(t.second, t.c, t.b, kBytes);
  return t.holds(t.second, t.c, t.sevens, "behind a wait of the host");
}

std::string readers_need_no_order(DeviceBench& t) {
  t.device.copy(t.first, t.b, t.a, kBytes);
  t.device.copy(t.second, t.c, t.a, kBytes);
  return first_of({t.holds(t.first, t.b, t.sevens, "the first copy"), t.holds(t.second, t.c, t.sevens, "the second copy")});
}

/// By way of the second stream, from a to c.
StepGraph captured_copies(DeviceBench& t) {
  t.device.begin_capture(t.first);
  t.device.copy(t.first, t.b, t.a, kBytes);
  t.device.record(t.event, t.first);
  t.device.wait(t.second, t.event);
  t.device.copy(t.second, t.c, t.b, kBytes);
  t.device.record(t.event, t.second);
  t.device.wait(t.first, t.event);
  return t.device.end_capture(t.first);
}

std::string a_graph_does_what_was_captured(DeviceBench& t) {
  if (not t.device.makes_graphs()) return "";
  t.device.copy_in(t.first, t.c, t.nines.data(), kBytes);
  t.device.synchronize(t.first);
  const StepGraph graph = captured_copies(t);
  if (std::string problem = t.holds(t.first, t.c, t.nines, "a capture does nothing"); not problem.empty()) return problem;
  t.device.replay(t.first, graph);
  if (std::string problem = t.holds(t.first, t.c, t.sevens, "a replay"); not problem.empty()) return problem;
  t.device.copy_in(t.first, t.a, t.nines.data(), kBytes);
  t.device.replay(t.first, graph);
  return t.holds(t.first, t.c, t.nines, "a replay reads what is there now");
}

std::string graphs_are_forgotten_one_by_one(DeviceBench& t) {
  if (not t.device.makes_graphs()) return "";
  const StepGraph one = captured_copies(t);
  t.device.begin_capture(t.first);
  t.device.copy(t.first, t.c, t.b, kBytes / 2);
  const StepGraph other = t.device.end_capture(t.first);
  t.device.copy_in(t.first, t.b, t.nines.data(), kBytes);
  t.device.replay(t.first, other);
  t.device.synchronize(t.first);
  t.device.forget(other);
  t.device.replay(t.first, one);
  const std::string problem = t.holds(t.first, t.c, t.sevens, "the graph that is left");
  t.device.forget(one);
  return problem;
}

std::string pinned_memory_is_the_hosts_again_behind_a_wait(DeviceBench& t) {
  std::byte* const pinned = t.device.allocate_pinned(kBytes);
  if (pinned == nullptr) return "";
  std::memset(pinned, 7, kBytes);
  t.device.copy_in(t.first, t.b, pinned, kBytes);
  t.device.synchronize(t.first);
  std::memset(pinned, 8, kBytes);
  const std::string in = t.holds(t.first, t.b, t.sevens, "from pinned memory");
  t.device.copy_out(t.first, pinned, t.a, kBytes);
  t.device.synchronize(t.first);
  const bool out = std::memcmp(pinned, t.sevens.data(), kBytes) == 0;
  t.device.release_pinned(pinned);
  return first_of({in, out ? "" : "what was copied to pinned memory is not there"});
}

std::string times_are_told_when_the_host_has_waited(DeviceBench& t) {
  const Event begin = t.device.make_timed_event(), end = t.device.make_timed_event();
  t.device.record_time(begin, t.first);
  for (int i = 0; i < 20; ++i) t.device.copy(t.first, t.b, t.a, kBytes);
  t.device.record_time(end, t.first);
  t.device.synchronize(t.first);
  const auto time = t.device.time_between(begin, end), back = t.device.time_between(end, begin);
  if (not time or not back) return "no time is told";
  return *time > 0 and *back == -*time ? "" : fmt::format("{} ns there and {} ns back", *time, *back);
}

std::string times_of_a_graph_are_those_of_its_last_replay(DeviceBench& t) {
  if (not t.device.makes_graphs()) return "";
  const Event start = t.device.make_timed_event(), inside = t.device.make_timed_event();
  t.device.record_time(start, t.first);
  t.device.begin_capture(t.first);
  t.device.copy(t.first, t.b, t.a, kBytes);
  t.device.record_time(inside, t.first);
  const StepGraph graph = t.device.end_capture(t.first);
  std::int64_t last = 0;
  for (int replay = 0; replay < 3; ++replay) {
    t.device.replay(t.first, graph);
    t.device.synchronize(t.first);
    const auto time = t.device.time_between(start, inside);
    if (not time or *time <= last) return fmt::format("replay {}: {} ns after the start, the one before {}", replay, time.value_or(-1), last);
    last = *time;
  }
  return "";
}

constexpr std::int64_t kSamples = 37;  // no multiple of anything

std::string kernels_compute_what_the_cpu_does(DeviceBench& t) {
  DeviceProgram program(t.device, t.target, t.plan, kSamples);
  program.feed(t.first, 1);
  program.launch(t.first, 1);
  return program.difference(t.first, 1);
}

std::string kernels_run_in_pieces(DeviceBench& t) {
  DeviceProgram program(t.device, t.target, t.plan, kSamples);
  program.feed(t.first, 2);
  program.launch(t.first, 5);
  return program.difference(t.first, 2);
}

std::string kernels_are_captured(DeviceBench& t) {
  if (not t.device.makes_graphs()) return "";
  DeviceProgram program(t.device, t.target, t.plan, kSamples);
  program.feed(t.first, 1);
  t.device.begin_capture(t.first);
  program.launch(t.first, 2);
  const StepGraph graph = t.device.end_capture(t.first);
  for (const float factor : {1.0F, -3.0F}) {
    program.feed(t.first, factor);
    t.device.replay(t.first, graph);
    if (std::string problem = program.difference(t.first, factor); not problem.empty()) return problem;
  }
  t.device.forget(graph);
  return "";
}

std::string other_kernels_are_not_found(DeviceBench& t) {
  if (t.device.find("a_kernel_of_nobody") != nullptr) return "before a program is loaded";
  const DeviceProgram program(t.device, t.target, t.plan, kSamples);
  return t.device.find("a_kernel_of_nobody") == nullptr ? "" : "one that no program has";
}

/// The bits of the host's sum, of the range alone.
std::string sums_have_the_trees_order(DeviceBench& t) {
  constexpr std::int64_t kElements = 1000;
  const int count = std::min(t.device.most_summed_terms(), 5);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    std::vector<std::vector<std::byte>> terms;
    std::vector<const void*> on_host;
    std::vector<const std::byte*> there;
    const std::size_t bytes = kElements * size_of(dtype);
    for (int term = 0; term < count; ++term) {
      terms.emplace_back(bytes);
      for (std::size_t i = 0; i < bytes; ++i) terms.back()[i] = static_cast<std::byte>((i * 37 + static_cast<std::size_t>(term) * 101) % (i % size_of(dtype) == size_of(dtype) - 1 ? 63 : 256));  // no infinities, no NaNs
      std::byte* const place = t.b + static_cast<std::size_t>(term) * kTensorAlignment * 128;
      t.device.copy_in(t.first, place, terms.back().data(), bytes);
      on_host.push_back(terms.back().data());
      there.push_back(place);
    }
    if (count < 2) return "";
    std::vector<std::byte> expected(bytes);
    t.device.copy_in(t.first, t.c, expected.data(), bytes);
    void* const sum = expected.data();
    std::byte* const sum_there = t.c;
    t.device.sum(t.first, dtype, there, {3, kElements - 5}, {&sum_there, 1});
    t.device.synchronize(t.first);
    sum_in_tree(dtype, on_host, {3, kElements - 5}, {&sum, 1});
    if (std::string problem = t.holds(t.first, t.c, expected, fmt::format("{} terms of {}", count, to_string(dtype))); not problem.empty()) return problem;
  }
  return "";
}

/// A library that is not there says why; one that is multiplies, also where it is captured.
std::string library_calls_give_what_the_host_does(DeviceBench& t) {
  const LibraryRow& row = *find_library_row("cublaslt.matmul");
  if (not t.device.why_no_library(row).empty()) return "";
  constexpr std::int64_t kM = 48, kK = 64, kN = 40;
  LibrarySpec spec;
  spec.operands = {TensorType{DType::kF32, {kM, kK}}, TensorType{DType::kF32, {kK, kN}}};
  spec.results = {TensorType{DType::kF32, {kM, kN}}};
  if (const std::string why = row.why_not(spec); not why.empty()) return why;
  const std::unique_ptr<DeviceCall> call = t.device.make_call(row, spec);
  if (call == nullptr) return "";
  if (call->scratch_bytes() > device_scratch(spec)) return "it wants more scratch than a plan has";
  std::vector<float> x(kM * kK), y(kK * kN), expected(kM * kN);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) - 6;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 7) - 3;  // whole numbers: no sum is rounded
  for (std::size_t m = 0; m < kM; ++m)
    for (std::size_t n = 0; n < kN; ++n)
      for (std::size_t k = 0; k < kK; ++k) expected[m * kN + n] += x[m * kK + k] * y[k * kN + n];
  std::byte* const x_there = t.b;
  std::byte* const y_there = t.b + kBytes / 2;
  t.device.copy_in(t.first, x_there, x.data(), x.size() * sizeof(float));
  t.device.copy_in(t.first, y_there, y.data(), y.size() * sizeof(float));
  t.device.synchronize(t.first);
  const DeviceMemory scratch(t.device, std::max<std::size_t>(call->scratch_bytes(), 1), "scratch");
  const std::byte* const operands[] = {x_there, y_there};
  std::byte* const results[] = {t.c};
  call->put(t.first, operands, results, scratch.data());
  const auto bytes = std::as_bytes(std::span(expected));
  if (std::string problem = t.holds(t.first, t.c, bytes, "a product"); not problem.empty() or not t.device.makes_graphs()) return problem;
  t.device.copy_in(t.first, t.c, t.nines.data(), bytes.size());
  t.device.synchronize(t.first);
  t.device.begin_capture(t.first);
  call->put(t.first, operands, results, scratch.data());
  t.device.replay(t.first, t.device.end_capture(t.first));
  return t.holds(t.first, t.c, bytes, "a product that was captured");
}

constexpr DeviceCase kCases[] = {
    {"HasAName", has_a_name},
    {"MemoryIsAligned", memory_is_aligned},
    {"TooMuchMemoryIsRefused", too_much_memory_is_refused},
    {"ALimitIsKept", a_limit_is_kept},
    {"CopiesGoThereAndBack", copies_go_there_and_back},
    {"PartsOfABlockAreTheirOwn", parts_of_a_block_are_their_own},
    {"EventsOrderStreams", events_order_streams},
    {"TheHostOrdersStreamsThatItWaitsFor", the_host_orders_streams},
    {"ReadersNeedNoOrderAmongThemselves", readers_need_no_order},
    {"AGraphDoesWhatWasCaptured", a_graph_does_what_was_captured},
    {"GraphsAreForgottenOneByOne", graphs_are_forgotten_one_by_one},
    {"PinnedMemoryIsTheHostsAgainBehindAWait", pinned_memory_is_the_hosts_again_behind_a_wait},
    {"TimesAreToldWhenTheHostHasWaited", times_are_told_when_the_host_has_waited},
    {"TimesOfAGraphAreThoseOfItsLastReplay", times_of_a_graph_are_those_of_its_last_replay},
    {"KernelsComputeWhatTheCpuDoes", kernels_compute_what_the_cpu_does},
    {"KernelsRunInPieces", kernels_run_in_pieces},
    {"KernelsAreCaptured", kernels_are_captured},
    {"OtherKernelsAreNotFound", other_kernels_are_not_found},
    {"SumsHaveTheTreesOrder", sums_have_the_trees_order},
    {"LibraryCallsGiveWhatTheHostDoes", library_calls_give_what_the_host_does},
};

}  // namespace

std::span<const DeviceCase> device_cases() { return kCases; }

std::string run_on(std::unique_ptr<Device> device, const std::string& target, const plan::Plan& plan, const DeviceCase& each) {
  try {
    DeviceBench bench(std::move(device), target, plan);
    return each.run(bench);
  } catch (const std::exception& error) { return error.what(); }
}

}  // namespace hone::test
