// What idle workers wait for, beside requests: the sockets that these come from.
#ifndef COLCAST_SERVER_SCHEDULING_EVENT_SOURCE_H_
#define COLCAST_SERVER_SCHEDULING_EVENT_SOURCE_H_

#include "server/scheduling/job.h"

namespace colcast::scheduling {

class EventSource {
 public:
  virtual ~EventSource() = default;
  // Waits until something happens, Wake() is called, or the time comes, and handles what happened
  // on this thread: it may submit jobs. Clock::time_point::min(): handles what has happened
  // already. Whether it was woken. On any number of threads.
  virtual bool Poll(Clock::time_point until) = 0;
  // Has one thread return from Poll(), now or when next one waits; several calls may count as one.
  virtual void Wake() = 0;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_EVENT_SOURCE_H_
