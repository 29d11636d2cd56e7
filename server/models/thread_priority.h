// Work that requests must not feel.
#ifndef COLCAST_SERVER_MODELS_THREAD_PRIORITY_H_
#define COLCAST_SERVER_MODELS_THREAD_PRIORITY_H_

namespace colcast::models {

// For good, and for the threads that this one starts from now on: it and its reads of files wait
// for those of other threads where the kernel has both to choose from. Linux keeps such priorities
// by thread. Where the kernel refuses, nothing happens.
void LowerThisThreadsPriority();

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_THREAD_PRIORITY_H_
