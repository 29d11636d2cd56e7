#include "server/rest/body_text.h"

#include <algorithm>
#include <utility>

namespace colcast::http {
namespace {

constexpr size_t kBlockBytes = 64 << 10;
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
  buffer_ = std::make_unique<char[]>(kBlockBytes);
}

std::string_view BodyText::Next() {
  if (number_.empty()) {
    const std::string_view block = rest_.empty() ? NextVisible() : std::exchange(rest_, {});
    const size_t begin = block.find_last_not_of(kOfNumbers) + 1;
    number_ = block.substr(begin);
    if (begin > 0 || block.empty()) return block.substr(0, begin);
  }
  // A number at the end of one run of bytes may continue in the next.
  while (rest_.empty()) {
    const std::string_view block = NextVisible();
    const size_t end = std::min(block.find_first_not_of(kOfNumbers), block.size());
    number_ += block.substr(0, end);
    rest_ = block.substr(end);
    if (block.empty()) break;
  }
  seam_ = std::exchange(number_, {});
  return seam_;
}

std::string_view BodyText::NextVisible() {
  std::string_view block;
  while (!nul_ && block.empty() && ReadBlock(&block)) {
    const bool first = read_ == 0;
    read_ += block.size();
    FindNul(&block);
    if (first && block.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
      skipped_ = kByteOrderMark.size();
      block.remove_prefix(skipped_);
    }
  }
  return block;
}

Status BodyText::Finish() {
  std::string_view block;
  while (ReadBlock(&block)) {
    read_ += block.size();
    FindNul(&block);
  }
  if (!status_.ok() || !text_behind_nul_) return status_;
  return InvalidArgument("JSON Parse error: Invalid value. at offset: ", *nul_);
}

bool BodyText::ReadBlock(std::string_view* block) {
  if (ended_) return false;
  size_t size = kBlockBytes;
  if (inflated_) {
    status_ = ReadInflated(body_, &*inflated_, buffer_.get(), &size);
    *block = {buffer_.get(), size};
  } else if (next_slice_ < body_.slices.size()) {
    const Slice& slice = body_.slices[next_slice_++];
    *block = {reinterpret_cast<const char*>(slice.data), size = slice.size};
  } else {
    size = 0;
  }
  ended_ = size == 0 || !status_.ok();
  return !ended_;
}

// Truncates the block at the text's first NUL. read_ already includes the block.
void BodyText::FindNul(std::string_view* block) {
  std::string_view behind = *block;
  if (!nul_) {
    const size_t at = block->find('\0');
    if (at == std::string_view::npos) return;
    nul_ = read_ - block->size() + at;
    behind.remove_prefix(at);
    *block = block->substr(0, at);
  }
  text_behind_nul_ |= behind.find_first_not_of('\0') != std::string_view::npos;
}

}  // namespace colcast::http
