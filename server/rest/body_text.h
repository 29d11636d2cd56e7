// Reads a request's body as text, run by run: decompresses it on the fly, and never holds the whole
// decompressed text.
#ifndef COLCAST_SERVER_REST_BODY_TEXT_H_
#define COLCAST_SERVER_REST_BODY_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/wire/bytes.h"
#include "server/wire/inflater.h"

namespace colcast::http {

// The limit of a request's rows. Readers check it while they read, so that they stop decompressing
// and parsing early.
struct RowLimit {
  int64_t max_rows = std::numeric_limits<int64_t>::max();
  // Whether the input's first dimension is rows. Called only if there are too many rows; null means
  // that it always is.
  std::function<bool(const std::string& input)> has_rows;

  bool IsPassed(int64_t rows, std::string_view input) const {
    return rows > max_rows && (has_rows == nullptr || has_rows(std::string(input)));
  }
  // A RESOURCE_EXHAUSTED error.
  Status TooMany(const std::string& where) const;
};

// A body as received.
struct BodyBytes {
  Span<Slice> slices;
  bool gzip = false;
  size_t max_bytes = 256 << 20;      // after decompression
  const RowLimit* rows = nullptr;    // null for no limit
  bool* inflates_too_far = nullptr;  // set if decompression yields more than max_bytes; may be null
};

// Errors are those of Inflater::Read().
Status ReadInflated(const BodyBytes& body, Inflater* inflater, void* out, size_t* size);

// Reads the text from the beginning to the end, or to the first NUL. As in TF Serving, skips a
// leading byte order mark and trailing NULs.
class BodyText {
 public:
  explicit BodyText(const BodyBytes& body);

  // The next run of text, empty at the end; valid until the next call. A number never spans two
  // runs.
  std::string_view Next();

  // Reads the rest. Returns INVALID_ARGUMENT for data that is not gzip, and for a NUL inside the
  // text; RESOURCE_EXHAUSTED if the text is too long.
  Status Finish();

  size_t skipped() const { return skipped_; }  // size of the byte order mark, if there was one
  bool empty() const { return read_ == 0; }    // valid after Finish()

 private:
  std::string_view NextVisible();
  bool ReadBlock(std::string_view* block);
  void FindNul(std::string_view* block);

  BodyBytes body_;
  std::string_view rest_;  // unread part of the current block, after the completed number
  std::string number_;     // characters at the end of the previous run that may be a number
  std::string seam_;       // number_, completed from the next run
  size_t next_slice_ = 0;
  std::optional<Inflater> inflated_;
  std::unique_ptr<char[]> buffer_;  // buffer of decompressed text
  Status status_;
  bool ended_ = false;
  size_t read_ = 0;
  size_t skipped_ = 0;
  std::optional<size_t> nul_;
  bool text_behind_nul_ = false;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_BODY_TEXT_H_
