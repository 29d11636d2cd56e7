// Handles the signals that stop the server or make it reload its configuration.
#ifndef COLCAST_SERVER_STOP_SIGNALS_H_
#define COLCAST_SERVER_STOP_SIGNALS_H_

#include <signal.h>

#include <chrono>
#include <functional>

namespace colcast {

// Blocks SIGTERM, SIGINT and SIGHUP in this thread and all threads it will start, so that one
// thread can wait for them. Returns these signals. Ignores SIGPIPE and SIGXFSZ, so that writes fail
// instead.
sigset_t BlockStopSignals();

// Waits for SIGTERM or SIGINT; calls `reload` for each SIGHUP.
void WaitForStop(const sigset_t& signals, const std::function<void()>& reload);

// Whether SIGTERM or SIGINT has arrived, even if no thread has waited for it yet. May be called
// from any thread.
bool StopWasAsked();

// After this call, another SIGTERM or SIGINT ends the process immediately, without answering
// requests in flight.
void EndAtNext(const sigset_t& signals);

// Ends the process with exit code 1 a moment after `deadline` unless it has ended by itself, and
// logs what still runs. Needed because a running model cannot be stopped.
void EndShortlyAfter(std::chrono::steady_clock::time_point deadline, const char* (*running)());

}  // namespace colcast

#endif  // COLCAST_SERVER_STOP_SIGNALS_H_
