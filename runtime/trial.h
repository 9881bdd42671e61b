// Which of two ways to do the same thing is the faster one here: found by doing it both ways in turn.
#pragma once

namespace hone {

class Trial {
 public:
  enum class Way { kAlone, kTeam };  ///< on one thread, on all

  /// The way to go now.
  Way next() const { return is_over_ ? winner_ : turn_; }
  /// Is there nothing left to find out? Then seconds need not be taken.
  bool is_over() const { return is_over_; }
  /// The faster one so far; of equals kAlone, which leaves the other cores to others.
  Way winner() const { return winner_; }

  /// What going next() took. The first time of each way warms up.
  void add(double seconds);
  /// Nothing is to be tried.
  void decide(Way way);

 private:
  bool is_over_ = false;
  Way winner_ = Way::kAlone, turn_ = Way::kAlone;
  int rounds_ = 0;                           // of both ways
  double spent_ = 0, alone_ = 0, team_ = 0;  // seconds: all, and the least of each way
};

}  // namespace hone
