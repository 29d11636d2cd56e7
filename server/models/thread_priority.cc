#include "server/models/thread_priority.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace colcast::models {
namespace {

// A tenth of the processor time beside a busy thread of a worker: enough for a load to end on a
// server that is overloaded.
constexpr int kNice = 10;

// Of linux/ioprio.h: the class that is the default, and its lowest level.
constexpr int kIoPrioWhoProcess = 1;
constexpr int kIoPrioClassBestEffort = 2;
constexpr int kIoPrioClassShift = 13;
constexpr int kIoPrioLowest = 7;

}  // namespace

void LowerThisThreadsPriority() {
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  setpriority(PRIO_PROCESS, thread, kNice);
  syscall(SYS_ioprio_set, kIoPrioWhoProcess, thread,
          kIoPrioClassBestEffort << kIoPrioClassShift | kIoPrioLowest);
}

}  // namespace colcast::models
