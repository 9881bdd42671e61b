// A hundred faults in 2 to 8 processes that train: whatever happens to one, no other waits for ever, all end with the exit code for that and name the right one; and from the run folder
// that is left, as many processes go on to the same bytes as without a fault.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "tests/collective/faults.h"
#include "tests/collective/trained_model.h"
#include "tests/support/tools/run_folders.h"

namespace hone::test {
namespace {

using std::chrono::steady_clock;
using testing::ContainsRegex;
using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

/// The timeout, telling each other, and all that a busy machine may do to so many processes.
constexpr auto kEnd = 2s + 15s;
constexpr int kPeerExit = 9;

enum class Kind { kKilled, kStopped, kDisconnected, kFlippedBit, kOtherPlan, kOtherData };

struct Fault {
  Kind kind = Kind::kKilled;
  std::string transport = "vader";
  int size = 2, victim = 0;
  double moment = 0;  // of the time that training takes

  std::string text() const { return fmt::format("rank {} of {}, at {:.2f} of the run, over {}", victim, size, moment, transport); }
};

/// Does it to the running process.
bool strike(Kind kind, pid_t process) {
  switch (kind) {
    case Kind::kKilled: return kill(process, SIGKILL) == 0;
    case Kind::kStopped: return kill(process, SIGSTOP) == 0;
    case Kind::kDisconnected: return close_connections(process) > 0;
    case Kind::kFlippedBit: return flip_bit(process, std::as_bytes(std::span(TrainedModel::frozen_weight()))) > 0;
    default: return false;
  }
}

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_mpi(); not why.empty()) GTEST_SKIP() << why;
    model_.emplace();
  }

  void inject(Kind kind, int count);

 private:
  /// What training without a fault gives, and how long it takes.
  struct Reference {
    std::string onnx;
    Seconds time{};
  };
  /// Training takes some seconds. Where nothing is to happen, a busy machine may be as slow as it likes.
  static constexpr const char *kStruck = "2s", *kUndisturbed = "120s";
  static std::string flags(int size, const char* timeout) { return fmt::format("--quiet --collective-timeout {} --epochs {}", timeout, 240 / size); }
  static std::string command(int size, const char* timeout) { return TrainedModel::command("run", flags(size, timeout)); }
  const Reference& reference(int size);
  bool has_begun(const Ranks& ranks, const Fault& fault) const;
  bool has_trained_for(const Ranks& ranks, const Fault& fault, Seconds time) const;
  void expect_exits(const Ranks& ranks, const Fault& fault);
  bool strikes_while_training(const Fault& fault);
  void refuses_to_train(const Fault& fault);
  void goes_on(const Fault& fault);

  std::optional<TrainedModel> model_;
  std::map<int, Reference> references_;  // by number of ranks
  int told_ = 0;                         // ranks that have named one
};

const Faults::Reference& Faults::reference(int size) {
  if (const auto found = references_.find(size); found != references_.end()) return found->second;
  remove_run(model_->folder, "run");
  const Ranks ranks(model_->folder, "reference", {.size = size}, command(size, kUndisturbed));
  (void)awaited(model_->folder, "run/metrics.jsonl");
  const auto begin = steady_clock::now();
  ranks.expect_all_well();
  return references_[size] = {model_->folder.read("run.onnx"), steady_clock::now() - begin};
}

/// False where a busy machine has not started them within the timeout, so that they have never met. Weights that change before they are sent to all do no harm, so that waits for a step.
bool Faults::has_begun(const Ranks& ranks, const Fault& fault) const {
  const auto has_sign = [&] { return fault.kind == Kind::kFlippedBit ? awaited_checkpoint(model_->folder, "run", 0ms) : std::filesystem::exists(model_->folder / "run/metrics.jsonl"); };
  for (const auto begin = steady_clock::now(); not has_sign(); std::this_thread::sleep_for(5ms)) {
    if (ranks.has_ended(0) and ranks.said(0).find("MPI did not start within") != std::string::npos) return false;
    if (ranks.has_ended(0) or steady_clock::now() > begin + kPatience) {
      ADD_FAILURE() << "they have not begun\n" << ranks.all_said();
      return false;
    }
  }
  return true;
}

/// False where there is nothing to strike, or no longer.
bool Faults::has_trained_for(const Ranks& ranks, const Fault& fault, Seconds time) const {
  if (not has_begun(ranks, fault)) return false;
  std::this_thread::sleep_for(time);
  return not std::filesystem::exists(model_->folder / "run.onnx");
}

/// Who was struck may no longer know who it was; of two whose weights differ, none can know it.
void Faults::expect_exits(const Ranks& ranks, const Fault& fault) {
  const auto begin = steady_clock::now();
  const auto left = [&] { return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(begin + kEnd - steady_clock::now()), 1ms); };
  const bool is_struck_alone = fault.kind <= Kind::kDisconnected;
  const int named = not is_struck_alone and fault.size == 2 ? 1 : fault.victim;
  for (int rank = 0; rank < fault.size; ++rank) {
    if (rank == fault.victim and (fault.kind == Kind::kKilled or fault.kind == Kind::kStopped)) continue;
    EXPECT_TRUE(ranks.exit_code(rank, left()).has_value()) << "rank " << rank << " has not ended after " << Seconds(steady_clock::now() - begin).count() << " s";
  }
  const char* const has = fault.kind == Kind::kOtherPlan ? "another plan" : fault.kind == Kind::kOtherData ? "other data" : "other weights";
  const std::string words = is_struck_alone ? R"(\(process [0-9]+ on [^)]+\) (did not come|cannot be reached))" : fmt::format("of {} has {}", fault.size, has);
  const std::string names = fmt::format(R"(error\[HN-0801\]: rank {} {})", named, words);
  for (int rank = 0; rank < fault.size; ++rank) {
    if (rank == fault.victim and is_struck_alone) continue;
    ++told_;
    EXPECT_EQ(ranks.exit_code(rank, 1ms), kPeerExit) << "rank " << rank;
    EXPECT_THAT(ranks.said(rank), ContainsRegex(names)) << "rank " << rank << " does not name rank " << named;
    if (fault.kind <= Kind::kFlippedBit) EXPECT_THAT(ranks.said(rank), ContainsRegex("note: in step [0-9]+")) << "rank " << rank << " does not name the step";
  }
  if (HasFailure()) ADD_FAILURE() << ranks.all_said();
}

/// False where they were ready before.
bool Faults::strikes_while_training(const Fault& fault) {
  const Seconds time = reference(fault.size).time * 0.8 * fault.moment;
  remove_run(model_->folder, "run");
  const Ranks ranks(model_->folder, "ranks", {.size = fault.size, .transport = fault.transport}, command(fault.size, kStruck));
  const pid_t victim = ranks.process(fault.victim);
  if (not has_trained_for(ranks, fault, time)) return false;
  EXPECT_TRUE(strike(fault.kind, victim)) << "nothing to strike";
  expect_exits(ranks, fault);
  return true;
}

void Faults::refuses_to_train(const Fault& fault) {
  remove_run(model_->folder, "run");
  const bool plan = fault.kind == Kind::kOtherPlan;
  const std::string other = TrainedModel::command("run", flags(fault.size, kUndisturbed), plan ? "other.hone" : "plan.hone", plan ? "x.npy" : "other.npy");
  const Ranks ranks(model_->folder, "ranks", {.size = fault.size, .transport = fault.transport}, command(fault.size, kUndisturbed), {{fault.victim, other}});
  expect_exits(ranks, fault);
}

void Faults::goes_on(const Fault& fault) {
  const Ranks ranks(model_->folder, "resumed", {.size = fault.size, .transport = fault.transport}, command(fault.size, kUndisturbed) + " --resume");
  ranks.expect_all_well();
  EXPECT_EQ(model_->folder.read("run.onnx") == reference(fault.size).onnx, true) << "other bytes than without a fault";
}

/// The same faults in each run, except for those that came too late; others where HONE_FAULTS is set to another number.
void Faults::inject(Kind kind, int count) {
  if ((kind == Kind::kDisconnected or kind == Kind::kFlippedBit) and not can_reach_into_processes()) GTEST_SKIP() << "one process may not look into another one here";
  const char* const seed = std::getenv("HONE_FAULTS");
  std::mt19937 random(static_cast<unsigned>(kind) + 1 + 10 * static_cast<unsigned>(seed == nullptr ? 0 : std::atoi(seed)));
  int late = 0;
  const auto begin = steady_clock::now();
  for (int done = 0; done < count and not HasFailure();) {
    Fault fault = {.kind = kind, .transport = random() % 2 == 0 ? "vader" : "tcp", .size = 2 + static_cast<int>(random() % 7)};
    fault.victim = static_cast<int>(random() % static_cast<unsigned>(fault.size));
    fault.moment = static_cast<double>(random() % 1000) / 1000;
    if (kind == Kind::kDisconnected) fault.transport = "tcp";
    const testing::ScopedTrace trace(__FILE__, __LINE__, fault.text());
    if (kind >= Kind::kOtherPlan) {
      refuses_to_train(fault);
    } else if (strikes_while_training(fault)) {
      goes_on(fault);
    } else {
      ASSERT_LT(++late, count) << "most runs end before anything happens to them";
      continue;
    }
    ++done;
    std::cout << fmt::format("{} {}: {:.1f} s\n", done, fault.text(), Seconds(steady_clock::now() - begin).count()) << std::flush;
  }
  EXPECT_GE(told_, count) << "of the others, fewer than one a fault have named who it was";
}

TEST_F(Faults, OfKilledProcesses) { inject(Kind::kKilled, 25); }
TEST_F(Faults, OfStoppedProcesses) { inject(Kind::kStopped, 20); }
TEST_F(Faults, OfClosedConnections) { inject(Kind::kDisconnected, 15); }
TEST_F(Faults, OfFlippedBits) { inject(Kind::kFlippedBit, 16); }
TEST_F(Faults, OfOtherPlans) { inject(Kind::kOtherPlan, 12); }
TEST_F(Faults, OfOtherData) { inject(Kind::kOtherData, 12); }

}  // namespace
}  // namespace hone::test
