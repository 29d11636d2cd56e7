// Work that gives way to requests, or to shorter ones.
#ifndef COLCAST_SERVER_BASE_THREAD_PRIORITY_H_
#define COLCAST_SERVER_BASE_THREAD_PRIORITY_H_

namespace colcast {

// For good, and for the threads that this one starts from now on: it and its reads of files wait
// for those of other threads where the kernel has both to choose from. Linux keeps such priorities
// by thread. Where the kernel refuses, nothing happens.
// `nice`: as nice(7) has it, at most 19. 10 is a tenth of the processor time beside a busy thread
// of a worker: enough for a load to end on a server that is overloaded, and that may need the new
// version because it is.
void LowerThisThreadsPriority(int nice = 10);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_THREAD_PRIORITY_H_
