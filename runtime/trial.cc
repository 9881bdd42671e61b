#include "runtime/trial.h"

#include <algorithm>

namespace hone {
namespace {

/// Runs of a turn. The first does not count: it wakes the other threads, or finds in the cache what the other way left there.
constexpr int kInARow = 3;
constexpr int kTrialRounds = 4;
constexpr int kFewestRounds = 3;         // one look at what takes long was seen to fall into a moment in which a core was taken away, and to decide a whole run
constexpr double kEnoughSeconds = 0.02;

}  // namespace

bool Trial::start_again() {
  is_over_ = false;
  rounds_ = 0;
  spent_ = 0;
  alone_ = team_ = kNothing;
  return true;
}

void Trial::add(double seconds) {
  if (is_over_) return;
  double& least = turn_ == Way::kAlone ? alone_ : team_;
  if (in_a_row_ > 0) least = std::min(least, seconds);
  spent_ += seconds;
  if (++in_a_row_ < kInARow) return;
  in_a_row_ = 0;
  if (turn_ == Way::kAlone) {
    turn_ = Way::kTeam;
    return;
  }
  turn_ = Way::kAlone;
  winner_ = team_ < alone_ ? Way::kTeam : Way::kAlone;
  ++rounds_;
  is_over_ = rounds_ >= kTrialRounds or (rounds_ >= kFewestRounds and spent_ >= kEnoughSeconds);
  if (not is_over_) return;
  rest_ = next_rest_;
  next_rest_ = std::min(next_rest_ * 10, longest_rest_);
}

void Trial::decide(Way way) {
  winner_ = way;
  is_over_ = true;
  rest_ = 0;
}

}  // namespace hone
