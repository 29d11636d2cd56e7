// The end of the process, when a signal asks for it.
#ifndef COLCAST_SERVER_DRAIN_H_
#define COLCAST_SERVER_DRAIN_H_

#include <signal.h>

namespace colcast {

// Blocks SIGTERM and SIGINT in this thread and all it will start, so that one thread can wait for
// them. Returns the two.
sigset_t BlockStopSignals();

// From now on another of `signals` ends the process at once, without answering what is in flight.
void EndAtNext(const sigset_t& signals);

}  // namespace colcast

#endif  // COLCAST_SERVER_DRAIN_H_
