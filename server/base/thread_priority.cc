#include "server/base/thread_priority.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace colcast {
namespace {

// How long a thread that becomes ready may have to wait for this one. From Linux 6.6 on, a thread
// keeps its core for about 3 ms, whatever its nice value, unless it asks for less, which is
// possible from 6.12 on. Before 6.6, a nice thread gave way at once.
constexpr int kSliceNanoseconds = 100'000;

// From linux/ioprio.h: the default class and its lowest level.
constexpr int kIoPrioWhoProcess = 1;
constexpr int kIoPrioClassBestEffort = 2;
constexpr int kIoPrioClassShift = 13;
constexpr int kIoPrioLowest = 7;

}  // namespace

void LowerThisThreadsPriority(int nice) {
  sched_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.sched_policy = SCHED_BATCH;  // does not preempt others when it becomes ready
  attributes.sched_nice = nice;
  attributes.sched_runtime = kSliceNanoseconds;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
  syscall(SYS_ioprio_set, kIoPrioWhoProcess, 0,
          kIoPrioClassBestEffort << kIoPrioClassShift | kIoPrioLowest);
}

}  // namespace colcast
