#include "runtime/train/stop_signals.h"

#include <cstdlib>

#include "base/diag.h"

namespace hone {

namespace {

volatile std::sig_atomic_t stop_signal = 0;  // the one thing that a signal handler may touch
bool are_caught = false;

extern "C" void on_stop_signal(int number) {
  if (number == SIGINT and stop_signal != 0) std::_Exit(kExitStopped);
  stop_signal = number;
}

}  // namespace

StopSignals::StopSignals() {
  if (are_caught) throw Error(Code::kUsage, "there are StopSignals already, and signals come to a whole process", {}, {"make one, in main(), and ask it wherever something can be stopped"});
  are_caught = true;
  stop_signal = 0;
  struct sigaction action = {};
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    action.sa_handler = kSignals[i] == SIGPIPE ? SIG_IGN : on_stop_signal;
    sigaction(kSignals[i], &action, &before_[i]);
    if (kSignals[i] == SIGHUP and before_[i].sa_handler == SIG_IGN) sigaction(SIGHUP, &before_[i], nullptr);  // nohup: it is to go on
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  are_caught = false;
}

bool StopSignals::came() const { return stop_signal != 0; }

}  // namespace hone
