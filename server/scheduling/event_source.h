// Delivers events, such as requests arriving on sockets, to workers that wait for jobs.
#ifndef COLCAST_SERVER_SCHEDULING_EVENT_SOURCE_H_
#define COLCAST_SERVER_SCHEDULING_EVENT_SOURCE_H_

#include "server/scheduling/job.h"

namespace colcast::scheduling {

class EventSource {
 public:
  virtual ~EventSource() = default;
  // Waits for an event, Wake(), or the given time, and handles events on the calling thread;
  // handlers may submit jobs. With Clock::time_point::min(), handles pending events without
  // waiting. Returns whether Wake() ended the wait. Any number of threads may call it.
  virtual bool Poll(Clock::time_point until) = 0;
  // Makes one thread return from Poll(): one that is waiting, or else the next one to wait. Several
  // calls may count as one.
  virtual void Wake() = 0;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_EVENT_SOURCE_H_
