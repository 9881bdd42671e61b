#include "runtime/trial.h"

#include <algorithm>

namespace hone {
namespace {

constexpr int kRounds = 8;  // with the first, which warms up
constexpr int kFewestRounds = 5;         // one look at what takes long was seen to fall into a moment in which a core was taken away, and to decide a whole run
constexpr double kEnoughSeconds = 0.02;

}  // namespace

void Trial::add(double seconds) {
  if (is_over_) return;
  double& least = turn_ == Way::kAlone ? alone_ : team_;
  least = rounds_ <= 1 ? seconds : std::min(least, seconds);  // the second round overwrites the warm-up
  spent_ += seconds;
  if (turn_ == Way::kAlone) {
    turn_ = Way::kTeam;
    return;
  }
  turn_ = Way::kAlone;
  ++rounds_;
  winner_ = team_ < alone_ ? Way::kTeam : Way::kAlone;
  is_over_ = rounds_ >= kRounds or (rounds_ >= kFewestRounds and spent_ >= kEnoughSeconds);
}

void Trial::decide(Way way) {
  winner_ = way;
  is_over_ = true;
}

}  // namespace hone
