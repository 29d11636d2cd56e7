#include "server/states/state.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace colcast::states {

StateRef State::Make(size_t size, uint32_t layout) {
  void* const block = std::malloc(sizeof(State) + size);
  if (block == nullptr) throw std::bad_alloc();
  return StateRef::Adopt(new (block) State(size, layout));
}

size_t State::memory_bytes() const { return malloc_usable_size(const_cast<State*>(this)); }

void State::Release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  this->~State();
  std::free(this);
}

}  // namespace colcast::states
