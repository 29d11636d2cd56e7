// Lowers the priority of work that gives way to requests, or to shorter requests.
#ifndef COLCAST_SERVER_BASE_THREAD_PRIORITY_H_
#define COLCAST_SERVER_BASE_THREAD_PRIORITY_H_

namespace colcast {

// Permanently lowers the priority of this thread, and of threads that it starts later, for the CPU
// and for reading files. (Linux has such priorities per thread.) Does nothing if the kernel
// refuses. `nice`: a nice(7) value, at most 19. 10 gets a tenth of a core beside a busy worker:
// enough for loading to finish on an overloaded server, which may need the new version because it
// is overloaded.
void LowerThisThreadsPriority(int nice = 10);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_THREAD_PRIORITY_H_
