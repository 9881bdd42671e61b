// all_reduce of 100 MB: between threads beside memcpy in as many threads, by bytes read and written a second; between processes beside MPI_Allreduce, which sums in any order.
//
//   collective_bench [THREADS]
//   mpirun -n 2 collective_bench
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "base/diag.h"
#include "runtime/collective/mpi_communicator.h"
#include "runtime/collective/thread_communicators.h"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kElements = 25'000'000;
constexpr double kBytes = 4.0 * kElements;
constexpr int kRounds = 15;  // in turns, of which the median counts, since other programs run, too

double median(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// Of one call, behind a barrier.
double seconds_of(const std::function<void()>& meet, const std::function<void()>& call) {
  meet();
  const auto begin = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void between_threads(int size) {
  ThreadCommunicators communicators(size);
  std::barrier<> barrier(size);
  std::vector<double> reduce, copy;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      std::vector<float> elements(kElements, 0.0f), other(kElements, 0.0f);
      const ExchangedTensor tensor = {DType::kF32, kElements, elements.data()};
      const auto meet = [&] { barrier.arrive_and_wait(); };
      for (int round = 0; round < kRounds; ++round) {
        const double reduced = seconds_of(meet, [&] { communicators.of(rank).all_reduce({&tensor, 1}); });
        const double copied = seconds_of(meet, [&] {
          std::memcpy(other.data(), elements.data(), sizeof(float) * kElements);
          meet();
        });
        if (rank == 0) {
          reduce.push_back(reduced);
          copy.push_back(copied);
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  // Each element is read and written once, in every replica's memory; memcpy does as much.
  const double moved = 2 * kBytes * size * 1e-9;
  fmt::print("all_reduce of 100 MB between {} threads: {:.1f} ms, {:.2f} GB/s read and written; memcpy in {} threads: {:.2f} GB/s; {:.0f} %\n", size, median(reduce) * 1e3,
             moved / median(reduce), size, moved / median(copy), 100 * median(copy) / median(reduce));
}

/// MPI_Allreduce of f32, summed in place. MPI is in the process, but not among what this program is linked with.
using AllReduce = int (*)(const void*, void*, int, void*, void*, void*);

void between_processes() {
  const auto all = connect_with_mpi({.timeout = std::chrono::seconds(60), .version = "bench"});
  const auto mpi_all_reduce = reinterpret_cast<AllReduce>(dlsym(RTLD_DEFAULT, "MPI_Allreduce"));
  void* const f32 = dlsym(RTLD_DEFAULT, "ompi_mpi_float");
  void* const sum = dlsym(RTLD_DEFAULT, "ompi_mpi_op_sum");
  void* const world = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
  void* const in_place = reinterpret_cast<void*>(1);  // MPI_IN_PLACE
  std::vector<float> elements(kElements, 0.0f);
  const auto meet = [&] { all->barrier(); };
  const auto compare = [&](std::int64_t count, int rounds) {
    const ExchangedTensor tensor = {DType::kF32, count, elements.data()};
    std::vector<double> ours, theirs;
    for (int round = 0; round < rounds; ++round) {
      ours.push_back(seconds_of(meet, [&] { all->all_reduce({&tensor, 1}); }));
      theirs.push_back(seconds_of(meet, [&] { mpi_all_reduce(in_place, elements.data(), static_cast<int>(count), f32, sum, world); }));
    }
    if (all->rank() == 0)
      fmt::print("all_reduce of {} f32 between {} processes: {:.3f} ms; MPI_Allreduce: {:.3f} ms; ratio {:.2f}\n", count, all->size(), median(ours) * 1e3, median(theirs) * 1e3,
                 median(ours) / median(theirs));
  };
  for (const std::int64_t count : {1, 1000, 100'000}) compare(count, 300);
  compare(kElements, kRounds);
}

}  // namespace
}  // namespace hone

int main(int count, char** words) {
  try {
    if (hone::started_by_mpi()) hone::between_processes();
    else hone::between_threads(count > 1 ? std::atoi(words[1]) : 2);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    if (hone::mpi_is_unfinished()) std::_Exit(1);
    return 1;
  }
  return 0;
}
