#include "tests/runtime/fake_nccl.h"

#include <fmt/format.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>

#include "base/dtype.h"

namespace hone::test {

namespace {

using nccl::Comm;
using nccl::Result;

constexpr Result kInvalidUsage = 5;

FakeNccl* nccl_in_use = nullptr;
std::mutex mutex;
std::condition_variable changed;

/// What one replica brings to an exchange.
struct Brought {
  const void* from;
  void* to;
};
using Operation = std::function<void(const std::vector<Brought>&)>;

/// All communicators of one id.
struct Clique {
  int joined = 0;
  std::vector<std::vector<Brought>> meetings;  ///< by number: who came with what, by rank
};
Clique clique;

struct FakeComm {
  int rank, size;
  std::size_t meetings = 0;
};
FakeComm& of(Comm comm) { return *reinterpret_cast<FakeComm*>(comm); }

/// Of this thread's group.
struct Waiting {
  FakeComm* comm;
  Brought brought;
  Operation operation;
};
thread_local std::vector<Waiting> group;
thread_local int depth = 0;

/// Whoever comes last does it for all.
void meet(Waiting& waiting) {
  std::unique_lock lock(mutex);
  const std::size_t number = waiting.comm->meetings++;
  if (clique.meetings.size() <= number) clique.meetings.resize(number + 1);
  auto& brought = clique.meetings[number];
  brought.resize(static_cast<std::size_t>(waiting.comm->size), {nullptr, nullptr});
  brought[static_cast<std::size_t>(waiting.comm->rank)] = waiting.brought;
  int came = 0;
  for (const Brought& each : brought) came += each.to != nullptr ? 1 : 0;
  if (came == waiting.comm->size) {
    waiting.operation(brought);
    brought.push_back({nullptr, nullptr});  // it is done
    changed.notify_all();
  }
  changed.wait(lock, [&] { return clique.meetings[number].size() > static_cast<std::size_t>(waiting.comm->size); });
}

Result put(Comm comm, const void* from, void* to, const std::string& what, Operation operation) {
  if (depth == 0) return kInvalidUsage;
  if (of(comm).rank == 0) nccl_in_use->told.push_back(what);
  group.push_back({&of(comm), {from, to}, std::move(operation)});
  return 0;
}

/// The sum of f32, or of i32, of all.
void add_up(const std::vector<Brought>& all, std::size_t count, int type, const std::vector<void*>& to) {
  for (std::size_t i = 0; i < count; ++i) {
    if (type == nccl::kF32) {
      float sum = 0;
      for (const Brought& each : all) sum += static_cast<const float*>(each.from)[i];
      for (void* place : to) static_cast<float*>(place)[i] = sum;
    } else {
      std::int32_t sum = 0;
      for (const Brought& each : all) sum += static_cast<const std::int32_t*>(each.from)[i];
      for (void* place : to) static_cast<std::int32_t*>(place)[i] = sum;
    }
  }
}

}  // namespace

nccl::Library library_of(FakeNccl& of_test) {
  nccl_in_use = &of_test;
  clique = {};
  nccl::Library f;
  f.get_version = [](int* version) { return *version = 22809, 0; };
  f.result_text = [](Result) { return "unhandled system error"; };
  f.last_error = [](Comm) { return "as the library puts it"; };
  f.unique_id = [](nccl::UniqueId* id) { return std::memset(id->bytes, 7, sizeof(id->bytes)), nccl_in_use->has_id ? 0 : 2; };
  f.comm_create = [](Comm* comm, int size, nccl::UniqueId id, int rank, nccl::Config* config) -> Result {
    if (config->blocking != 0 or config->size != sizeof(nccl::Config) or id.bytes[127] != 7) return kInvalidUsage;
    const std::lock_guard lock(mutex);
    ++clique.joined, ++nccl_in_use->alive;
    *comm = reinterpret_cast<Comm>(new FakeComm{.rank = rank, .size = size});
    return nccl::kInProgress;
  };
  f.comm_error = [](Comm comm, Result* error) {
    const std::lock_guard lock(mutex);
    *error = nccl_in_use->next_failure != 0 ? nccl_in_use->next_failure : clique.joined < of(comm).size ? nccl::kInProgress : 0;
    return 0;
  };
  f.comm_abort = [](Comm comm) {
    const std::lock_guard lock(mutex);
    --nccl_in_use->alive, ++nccl_in_use->aborted;
    delete &of(comm);
    return 0;
  };
  f.group_start = [] { return ++depth, 0; };
  f.group_end = []() -> Result {
    --depth;
    std::vector<Waiting> waiting = std::move(group);
    group.clear();
    for (Waiting& each : waiting) meet(each);
    return nccl::kInProgress;
  };
  f.all_reduce = [](const void* from, void* to, std::size_t count, int type, int operation, Comm comm, cuda::StreamHandle) {
    return operation != nccl::kSum ? kInvalidUsage : put(comm, from, to, fmt::format("all_reduce {}", count), [count, type](const std::vector<Brought>& all) {
      std::vector<void*> everywhere;
      for (const Brought& each : all) everywhere.push_back(each.to);
      add_up(all, count, type, everywhere);
    });
  };
  f.reduce = [](const void* from, void* to, std::size_t count, int type, int operation, int root, Comm comm, cuda::StreamHandle) {
    return operation != nccl::kSum ? kInvalidUsage
                                   : put(comm, from, to, fmt::format("reduce {} to {}", count, root), [count, type, root](const std::vector<Brought>& all) { add_up(all, count, type, {all[static_cast<std::size_t>(root)].to}); });
  };
  f.broadcast = [](const void* from, void* to, std::size_t count, int, int root, Comm comm, cuda::StreamHandle) {
    return put(comm, from, to, fmt::format("broadcast {} from {}", count, root), [count, root](const std::vector<Brought>& all) {
      for (const Brought& each : all)
        if (each.to != all[static_cast<std::size_t>(root)].from) std::memcpy(each.to, all[static_cast<std::size_t>(root)].from, count);
    });
  };
  return f;
}

}  // namespace hone::test
