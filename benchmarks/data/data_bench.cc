// How fast batches come: in order and shuffled, out of memory and out of a file larger than may stay in memory, beside a plain memcpy of the same bytes.
//
//   data_bench [GIB [FOLDER]]    the file takes 4 GiB in FOLDER (/var/tmp), and is removed at the end
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "runtime/data/batches.h"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kRowElements = 784, kBatch = 256;
constexpr std::int64_t kMemoryRows = 80'000;  // 240 MiB of f32: far beyond any cache
constexpr int kDataRounds = 5;                    // of which the fastest counts, since other programs run, too

plan::Entry entry_of() {
  plan::Entry entry;
  entry.name = "data_bench";
  entry.feeds = {{"x", plan::Feed::Kind::kModelInput, DType::kF32, {Dim::symbol("N"), kRowElements}, std::nullopt, std::nullopt}};
  return entry;
}

BoundArrays bind(const plan::Entry& entry, Array array, double scale) {
  std::vector<std::pair<std::string, Array>> arrays;
  arrays.emplace_back("x", std::move(array));
  return {entry, std::move(arrays), {.flag = "data_bench", .batch_symbol = "N", .pre_batched = false, .scale = {{"x", scale}}}};
}

/// Seconds of the fastest of some epochs. The first one also makes the order.
double epoch_seconds(BatchReader& batches, int rounds) {
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) {
    batches.start_epoch(round);
    const auto begin = Clock::now();
    while (batches.next()) continue;
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

/// Seconds of memcpy for the array's bytes, a batch at a time, into one buffer.
double memcpy_seconds(const std::byte* data, std::size_t bytes) {
  const std::size_t batch = static_cast<std::size_t>(kBatch * kRowElements) * sizeof(float);
  std::vector<std::byte> to(batch);
  double best = 1e30;
  for (int round = 0; round < kDataRounds; ++round) {
    const auto begin = Clock::now();
    for (std::size_t at = 0; at + batch <= bytes; at += batch) {
      std::memcpy(to.data(), data + at, batch);
      asm volatile("" : : "r"(to.data()) : "memory");  // somebody might look at it
    }
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  return 0;
}

struct Result {
  const char* what;
  double bytes, seconds;
  std::int64_t batches;
};

Result measure(const plan::Entry& entry, const char* what, const Array& array, ShuffleOptions shuffle, Ahead ahead, int rounds, double scale = 1,
               std::int64_t batch = kBatch) {
  const BoundArrays data = bind(entry, array, scale);
  BatchReader batches(data, batch, shuffle, {.ahead = ahead});
  const double seconds = epoch_seconds(batches, rounds);
  return {what, static_cast<double>(array.row_count()) * static_cast<double>(array.row_bytes()), seconds, batches.batch_count()};
}

std::vector<Result> measure_memory(const plan::Entry& entry) {
  const Tensor numbers = Tensor::make(DType::kF32, {kMemoryRows, kRowElements}, [](std::span<std::byte> to) { std::memset(to.data(), 1, to.size()); });
  const Array floats("x", numbers), pixels("x", Tensor::zeros(DType::kU8, {kMemoryRows, kRowElements}));
  return {{"memcpy", static_cast<double>(numbers.byte_count()), memcpy_seconds(numbers.bytes().data(), numbers.byte_count()), kMemoryRows / kBatch},
          measure(entry, "memory, in order", floats, {.shuffle = false}, Ahead::kNever, kDataRounds),
          measure(entry, "memory, in order, gathered ahead", floats, {.shuffle = false}, Ahead::kAlways, kDataRounds),
          measure(entry, "memory, shuffled", floats, {.shuffle = true}, Ahead::kNever, kDataRounds),
          measure(entry, "memory, shuffled, u8 scaled to f32 (GB of u8)", pixels, {.shuffle = true}, Ahead::kNever, kDataRounds, 1 / 255.0),
          measure(entry, "memory, shuffled, u8 scaled to f32, batches of 64", pixels, {.shuffle = true}, Ahead::kNever, kDataRounds, 1 / 255.0, 64)};
}

std::vector<Result> measure_file(const plan::Entry& entry, const std::string& path, std::int64_t rows) {
  const DataSource source = {
      .name = "x", .path = path, .part = fmt::format("f32:{}x{}", rows, kRowElements), .kind = FileKind::kRaw, .first_row = 0, .end_row = std::nullopt};
  const Array array = Array::open(source);
  return {measure(entry, "file, in order", array, {.shuffle = false}, Ahead::kNever, 2),
          measure(entry, "file, in order, gathered ahead", array, {.shuffle = false}, Ahead::kAlways, 2),
          measure(entry, "file, shuffled through a buffer of 10000", array, {.shuffle = true, .buffer = 10'000}, Ahead::kAlways, 1),
          measure(entry, "file, shuffled", array, {.shuffle = true}, Ahead::kAlways, 1)};
}

void write_rows(const std::string& path, std::int64_t rows) {
  std::vector<float> row(static_cast<std::size_t>(kRowElements));
  write_file_atomically(path, [&](AtomicFile& file) {
    for (std::int64_t i = 0; i < rows; ++i) {
      std::fill(row.begin(), row.end(), static_cast<float>(i));
      file.write(std::as_bytes(std::span(row)));
    }
  });
}

void run(double gib, const std::string& folder) {
  const plan::Entry entry = entry_of();
  const auto rows = static_cast<std::int64_t>(gib * (1 << 30)) / static_cast<std::int64_t>(kRowElements * sizeof(float));
  const std::string path = fmt::format("{}/hone-data-bench-{}.bin", folder, ::getpid());
  write_rows(path, rows);
  const std::vector<Result> of_file = measure_file(entry, path, rows);
  remove_file(path);
  const double peak = peak_mib();  // before anything large is in memory
  std::vector<Result> results = measure_memory(entry);
  const double bandwidth = results[0].bytes / results[0].seconds;
  results.insert(results.end(), of_file.begin(), of_file.end());
  for (const auto& [what, bytes, seconds, batches] : results)
    fmt::print("{:<50} {:>6.2f} GB/s {:>4.0f} % of memcpy {:>8.1f} us a batch\n", what, bytes / seconds / 1e9, 100 * bytes / seconds / bandwidth,
               seconds / static_cast<double>(batches) * 1e6);
  fmt::print("a file of {:.1f} GiB took at most {:.0f} MiB of memory\n", gib, peak);
}

}  // namespace
}  // namespace hone

int main(int count, char** words) {
  const double gib = count > 1 ? std::strtod(words[1], nullptr) : 4;
  if (not(gib > 0) or count > 3) {
    fmt::print(stderr, "usage: data_bench [GIB [FOLDER]]\n");
    return 2;
  }
  try {
    hone::run(gib, count > 2 ? words[2] : "/var/tmp");
  } catch (const hone::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
  return 0;
}
