// Which of two ways to do the same thing is the faster one here: found by doing it both ways in turn, and looked at again now and then, because what
// else the machine does changes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace hone {

class Trial {
 public:
  enum class Way : std::uint8_t { kAlone, kTeam };  ///< each thread by itself, or one for all; all threads together

  static constexpr std::int64_t kLongestRest = 100'000;

  /// `rest`: so many runs go by, alone, before it is looked at for the first time. `longest_rest`: between two looks there are 1000 runs, then ten times as many each time, up to so many.
  Trial() : Trial(0) {}
  explicit Trial(std::int64_t rest, std::int64_t longest_rest = kLongestRest) : is_over_(rest > 0), rest_(rest), longest_rest_(longest_rest) {}

  /// Is the coming run one of those that are timed? To be asked once before each run.
  bool wants_time() { return not is_over_ or (rest_ > 0 and --rest_ == 0 and start_again()); }
  /// The way to go now.
  Way next() const { return is_over_ ? winner_ : turn_; }
  /// The faster one so far; of equals kAlone, which leaves the other cores to others.
  Way winner() const { return winner_; }

  /// What going next() took, if wants_time() said so.
  void add(double seconds);
  /// Nothing is to be tried.
  void decide(Way way);

 private:
  bool start_again();

  static constexpr double kNothing = std::numeric_limits<double>::infinity();

  bool is_over_;
  Way winner_ = Way::kAlone, turn_ = Way::kAlone;
  int rounds_ = 0, in_a_row_ = 0;            // turns of both ways; runs of this turn
  double spent_ = 0, alone_ = kNothing, team_ = kNothing;  // seconds: all, and the least of each way
  std::int64_t rest_, longest_rest_, next_rest_ = std::min<std::int64_t>(1000, longest_rest_);  // runs until it is looked at again; 0: it never is
};

}  // namespace hone
