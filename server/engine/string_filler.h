// Writes the strings of a column into a tensor.
#ifndef COLCAST_SERVER_ENGINE_STRING_FILLER_H_
#define COLCAST_SERVER_ENGINE_STRING_FILLER_H_

#include <cstdint>

#include "server/wire/column.h"
#include "tensorflow/core/platform/tstring.h"

namespace colcast::engine {

class StringFiller final : public StringVisitor {
 public:
  explicit StringFiller(tensorflow::tstring* out) : out_(out) {}

  void Set(int64_t index, const Bytes& value) override {
    if (value.contiguous()) {
      out_[index].assign(value.view().data(), value.size());
    } else {
      out_[index].resize_uninitialized(value.size());
      value.CopyTo(out_[index].mdata());
    }
  }

  void Repeat(int64_t begin, int64_t end) override {
    const tensorflow::tstring last = begin == 0 ? tensorflow::tstring() : out_[begin - 1];
    for (int64_t i = begin; i < end; ++i) out_[i] = last;
  }

 private:
  tensorflow::tstring* const out_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_STRING_FILLER_H_
