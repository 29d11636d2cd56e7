// The end of the process, when a signal asks for it.
#ifndef COLCAST_SERVER_STOP_SIGNALS_H_
#define COLCAST_SERVER_STOP_SIGNALS_H_

#include <signal.h>

#include <chrono>
#include <functional>

namespace colcast {

// Blocks SIGTERM, SIGINT and SIGHUP in this thread and all it will start, so that one thread can
// wait for them. Returns the three. SIGPIPE and SIGXFSZ are ignored: the write fails.
sigset_t BlockStopSignals();

// Waits for SIGTERM or SIGINT and calls `reload` for each SIGHUP.
void WaitForStop(const sigset_t& signals, const std::function<void()>& reload);

// Whether one of them has come, even if nobody has waited for it yet. From any thread.
bool StopWasAsked();

// From now on another SIGTERM or SIGINT ends the process at once, without answering what is in
// flight.
void EndAtNext(const sigset_t& signals);

// Ends the process a moment after `deadline`, with 1 and a word in the log, unless it has ended by
// itself: a model that runs cannot be stopped.
void EndShortlyAfter(std::chrono::system_clock::time_point deadline);

}  // namespace colcast

#endif  // COLCAST_SERVER_STOP_SIGNALS_H_
