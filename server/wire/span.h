// A view of contiguous elements owned elsewhere (std::span comes with C++20).
#ifndef COLCAST_SERVER_WIRE_SPAN_H_
#define COLCAST_SERVER_WIRE_SPAN_H_

#include <cstddef>
#include <vector>

namespace colcast {

template <typename T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(const T* data, size_t size) : data_(data), size_(size) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a vector is a span wherever one is read.
  Span(const std::vector<T>& values) : data_(values.data()), size_(values.size()) {}

  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](size_t index) const { return data_[index]; }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_SPAN_H_
