#include "server/drain.h"

#include <pthread.h>

#include <cstdlib>
#include <thread>

#include "server/log.h"

namespace colcast {

sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void EndAtNext(const sigset_t& signals) {
  std::thread([signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    LogWarning("asked again to stop: ending at once");
    std::_Exit(128 + signal);  // what a shell reports for a process that a signal ended
  }).detach();
}

}  // namespace colcast
