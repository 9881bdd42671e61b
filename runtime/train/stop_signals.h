// Signals that ask a training program to stop.
#pragma once

#include <array>
#include <csignal>

namespace hone {

/// What a process exits with that was asked to stop: it has saved what there was, or had nowhere to save it.
constexpr int kExitStoppedSaved = 75, kExitStopped = 130;

/// While it lives, SIGINT, SIGTERM, SIGUSR1 and SIGHUP (unless that is ignored, as behind nohup) are wishes, so that a step can be finished and everything be saved:
///
///   const StopSignals signals;
///   trainer.fit(batches, {.run_dir = "run", .resume = true, .stop_requested = [&] { return signals.came(); }});
///
/// SIGPIPE does nothing meanwhile: where nobody reads the progress any more (a pipe to tee or head), training goes on. A second SIGINT ends the process at once: exit code 130. At its end the signals do again what they did before.
class StopSignals {
 public:
  /// Throws kUsage where there is another one: signals come to a whole process.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// One of them, since this began.
  bool came() const;

 private:
  static constexpr std::array<int, 5> kSignals = {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGPIPE};
  std::array<struct sigaction, kSignals.size()> before_ = {};
};

}  // namespace hone
