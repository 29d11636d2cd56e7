// Limits the length of an error message that may name many inputs.
#ifndef COLCAST_SERVING_PATCHES_PHRASES_H_
#define COLCAST_SERVING_PATCHES_PHRASES_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace colcast {

// Joins phrases up to a size that a gRPC status can carry, and counts the phrases that do not fit.
// gRPC sends the text in 8 KB of metadata and would replace a longer one with another error.
class Phrases {
 public:
  void Add(absl::string_view phrase) {
    if (text_.empty()) {
      text_ = phrase.size() > kMaxBytes ? absl::StrCat(phrase.substr(0, kMaxBytes), "...")
                                        : std::string(phrase);
    } else if (text_.size() + phrase.size() > kMaxBytes) {
      ++left_off_;
    } else {
      absl::StrAppend(&text_, "; ", phrase);
    }
  }

  std::string Take() && {
    if (left_off_ > 0) absl::StrAppend(&text_, "; and ", left_off_, " more");
    return std::move(text_);
  }

 private:
  static constexpr size_t kMaxBytes = 4000;

  std::string text_;
  int left_off_ = 0;
};

}  // namespace colcast

#endif  // COLCAST_SERVING_PATCHES_PHRASES_H_
