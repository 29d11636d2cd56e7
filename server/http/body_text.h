// A request's body as text, piece by piece: inflated as it is read, and never there as a whole.
#ifndef COLCAST_SERVER_HTTP_BODY_TEXT_H_
#define COLCAST_SERVER_HTTP_BODY_TEXT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/http1/gzip.h"
#include "server/wire/bytes.h"
#include "server/wire/span.h"

namespace colcast::http {

// A body as it came.
struct BodyBytes {
  Span<Slice> slices;
  bool gzip = false;
  size_t max_bytes = 256 << 20;  // once inflated
};

// Reads it from the beginning to the end, or to the first NUL. A byte order mark in front and NULs
// at the end are passed over, as in TF Serving.
class BodyText {
 public:
  explicit BodyText(const BodyBytes& body);

  // The next piece of the text, empty at its end; good until the next one. A number lies in one
  // piece.
  std::string_view Next();

  // Reads the rest. INVALID_ARGUMENT for data that is not gzip, and for a NUL inside the text;
  // RESOURCE_EXHAUSTED for too much of it.
  Status Finish();

  size_t skipped() const { return skipped_; }  // of a byte order mark
  bool empty() const { return read_ == 0; }    // known after Finish()

 private:
  std::string_view NextVisible();
  bool ReadPiece(std::string_view* piece);
  void FindNul(std::string_view* piece);

  BodyBytes body_;
  std::string_view rest_;  // of the piece before, behind what may be a number
  std::string number_;     // what may be one, at the end of the piece before
  std::string seam_;       // the same with its end, from the piece behind
  size_t next_slice_ = 0;
  std::optional<Gunzipper> inflated_;
  std::unique_ptr<char[]> piece_;  // of what is inflated
  Status status_;
  bool ended_ = false;
  size_t read_ = 0;
  size_t skipped_ = 0;
  std::optional<size_t> nul_;
  bool text_behind_nul_ = false;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_BODY_TEXT_H_
