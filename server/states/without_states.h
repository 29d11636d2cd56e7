// Turns the state cache off for the current thread.
#ifndef COLCAST_SERVER_STATES_WITHOUT_STATES_H_
#define COLCAST_SERVER_STATES_WITHOUT_STATES_H_

namespace colcast::states {

// While an instance exists, every store is off for the thread that created it.
class WithoutStates {
 public:
  WithoutStates() { ++depth_; }
  ~WithoutStates() { --depth_; }
  WithoutStates(const WithoutStates&) = delete;
  WithoutStates& operator=(const WithoutStates&) = delete;

  static bool HoldsHere() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_WITHOUT_STATES_H_
