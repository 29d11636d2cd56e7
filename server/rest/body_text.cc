#include "server/rest/body_text.h"

#include <algorithm>
#include <utility>

namespace colcast::http {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The characters that occur in numbers, including NaN and Infinity.
constexpr std::string_view kOfNumbers = "0123456789+-.eENaInfity";

}  // namespace

Status RowLimit::TooMany(const std::string& where) const {
  return ResourceExhausted(where, " has more rows than max_request_rows, which is ", max_rows);
}

Status ReadInflated(const BodyBytes& body, Inflater* inflater, void* out, size_t* size) {
  Status status = inflater->Read(out, size);
  if (body.inflates_too_far != nullptr) {
    *body.inflates_too_far = status.code == StatusCode::kResourceExhausted;
  }
  return status;
}

BodyText::BodyText(const BodyBytes& body) : body_(body) {
  if (!body_.gzip) return;
  inflated_.emplace(body_.slices, Inflater::Format::kGzipBody, body_.max_bytes);
  piece_ = std::make_unique<char[]>(kPieceBytes);
}

std::string_view BodyText::Next() {
  if (number_.empty()) {
    const std::string_view piece = rest_.empty() ? NextVisible() : std::exchange(rest_, {});
    const size_t begin = piece.find_last_not_of(kOfNumbers) + 1;
    number_ = piece.substr(begin);
    if (begin > 0 || piece.empty()) return piece.substr(0, begin);
  }
  // A number at the end of one run of bytes may continue in the next.
  while (rest_.empty()) {
    const std::string_view piece = NextVisible();
    const size_t end = std::min(piece.find_first_not_of(kOfNumbers), piece.size());
    number_ += piece.substr(0, end);
    rest_ = piece.substr(end);
    if (piece.empty()) break;
  }
  seam_ = std::exchange(number_, {});
  return seam_;
}

std::string_view BodyText::NextVisible() {
  std::string_view piece;
  while (!nul_ && piece.empty() && ReadPiece(&piece)) {
    const bool first = read_ == 0;
    read_ += piece.size();
    FindNul(&piece);
    if (first && piece.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
      skipped_ = kByteOrderMark.size();
      piece.remove_prefix(skipped_);
    }
  }
  return piece;
}

Status BodyText::Finish() {
  std::string_view piece;
  while (ReadPiece(&piece)) {
    read_ += piece.size();
    FindNul(&piece);
  }
  if (!status_.ok() || !text_behind_nul_) return status_;
  return InvalidArgument("JSON Parse error: Invalid value. at offset: ", *nul_);
}

bool BodyText::ReadPiece(std::string_view* piece) {
  if (ended_) return false;
  size_t size = kPieceBytes;
  if (inflated_) {
    status_ = ReadInflated(body_, &*inflated_, piece_.get(), &size);
    *piece = {piece_.get(), size};
  } else if (next_slice_ < body_.slices.size()) {
    const Slice& slice = body_.slices[next_slice_++];
    *piece = {reinterpret_cast<const char*>(slice.data), size = slice.size};
  } else {
    size = 0;
  }
  ended_ = size == 0 || !status_.ok();
  return !ended_;
}

// Cuts off the run, which is already counted as read, at the text's first NUL.
void BodyText::FindNul(std::string_view* piece) {
  std::string_view behind = *piece;
  if (!nul_) {
    const size_t at = piece->find('\0');
    if (at == std::string_view::npos) return;
    nul_ = read_ - piece->size() + at;
    behind.remove_prefix(at);
    *piece = piece->substr(0, at);
  }
  text_behind_nul_ |= behind.find_first_not_of('\0') != std::string_view::npos;
}

}  // namespace colcast::http
