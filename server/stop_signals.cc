#include "server/stop_signals.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "server/base/log.h"
#include "server/base/thread.h"

namespace colcast {
namespace {

std::atomic<bool> stop_was_asked{false};

void RunAside(const std::string& what, std::function<void()> body) {
  Thread thread;
  const Status status = StartThread(what, std::move(body), &thread);
  if (status.ok()) {
    thread.detach();
  } else {
    LogError(status.message);
  }
}

}  // namespace

sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  signal(SIGCHLD, SIG_DFL);  // an inherited SIG_IGN would hide how a load check ended
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void WaitForStop(const sigset_t& signals, const std::function<void()>& reload) {
  for (int signal = 0;;) {
    sigwait(&signals, &signal);
    if (signal != SIGHUP) break;
    LogInfo("SIGHUP: reading configuration, versions and item tables again");
    reload();
  }
  stop_was_asked = true;
}

bool StopWasAsked() {
  if (stop_was_asked) return true;
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
}

void EndAtNext(const sigset_t& signals) {
  RunAside("a second signal", [signals] {
    int signal = SIGHUP;
    while (signal == SIGHUP) sigwait(&signals, &signal);
    LogWarning("asked again to stop: exiting immediately");
    FlushLog();
    std::_Exit(128 + signal);  // the exit code that a shell reports for a process ended by a signal
  });
}

void EndShortlyAfter(std::chrono::steady_clock::time_point deadline, const char* (*running)()) {
  RunAside("the end of the drain", [deadline, running] {
    // Leaves time for calls that were cut off at the deadline to end.
    constexpr std::chrono::seconds kMoment{2};
    std::this_thread::sleep_until(deadline + kMoment);
    LogWarning(std::string("stopping: ") + running() +
               " after --drain_timeout_seconds; exiting without waiting for the end");
    FlushLog();
    std::_Exit(EXIT_FAILURE);
  });
}

}  // namespace colcast
