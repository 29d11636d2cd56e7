#include "server/http2/grpc.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "server/wire/inflater.h"

namespace colcast::http2 {
namespace {

// Returns 0 for an unknown unit.
int64_t NanosecondsOf(char unit) {
  switch (unit) {
    case 'H':
      return 3600'000'000'000;
    case 'M':
      return 60'000'000'000;
    case 'S':
      return 1'000'000'000;
    case 'm':
      return 1'000'000;
    case 'u':
      return 1'000;
    case 'n':
      return 1;
    default:
      return 0;
  }
}

}  // namespace

std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text) {
  constexpr size_t kMaxDigits = 8;
  if (text.size() < 2 || text.size() > kMaxDigits + 1) return std::nullopt;
  const int64_t unit = NanosecondsOf(text.back());
  if (unit == 0) return std::nullopt;
  int64_t number = 0;
  for (const char digit : text.substr(0, text.size() - 1)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = 10 * number + (digit - '0');
  }
  // 99,999,999 hours would overflow.
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);
  if (number > kLongest.count() / unit) return kLongest;
  return std::chrono::nanoseconds(number * unit);
}

bool IsGrpc(std::string_view content_type) {
  constexpr std::string_view kGrpc = "application/grpc";
  if (content_type.substr(0, kGrpc.size()) != kGrpc) return false;
  return content_type.size() == kGrpc.size() || content_type[kGrpc.size()] == '+' ||
         content_type[kGrpc.size()] == ';';
}

std::string PercentEncode(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      encoded += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

namespace {

// Shorter runs of bytes are copied, because sharing them would keep a block of 64 KiB alive.
constexpr size_t kMinSharedBytes = 8 << 10;

// Bounds of a new block's size. Blocks grow with the bytes received, not with the announced length.
constexpr size_t kMinRoom = 1 << 10;
constexpr size_t kMaxRoom = 64 << 10;

Status CompressionNamed(const std::string& encoding, Compression* compression) {
  if (encoding == "gzip") {
    *compression = Compression::kGzip;
  } else if (encoding == "deflate") {
    *compression = Compression::kDeflate;
  } else if (encoding.empty() || encoding == "identity") {
    return Internal("a message is compressed, but no grpc-encoding says how");
  } else {
    return Error(StatusCode::kUnimplemented, "grpc-encoding ", encoding,
                 " is not supported; gzip and deflate are");
  }
  return OkStatus();
}

}  // namespace

Status MessageReader::Read(const std::shared_ptr<const void>& owner, const uint8_t* data,
                           size_t* size) {
  const size_t of_prefix = std::min(*size, kMessagePrefixBytes - prefix_bytes_);
  if (of_prefix > 0) {
    std::memcpy(prefix_.data() + prefix_bytes_, data, of_prefix);
    prefix_bytes_ += of_prefix;
    if (prefix_bytes_ == kMessagePrefixBytes) {
      if (Status status = BeginMessage(); !status.ok()) return status;
    }
  }
  const size_t of_message = std::min(*size - of_prefix, left_);
  if (of_message >= kMinSharedBytes) {
    Keep(owner, data + of_prefix, of_message);
  } else if (of_message > 0) {
    Copy(data + of_prefix, of_message);
  }
  left_ -= of_message;
  *size = of_prefix + of_message;
  return OkStatus();
}

Status MessageReader::BeginMessage() {
  left_ = static_cast<size_t>(prefix_[1]) << 24 | prefix_[2] << 16 | prefix_[3] << 8 | prefix_[4];
  if (left_ > max_bytes_) {
    return ResourceExhausted("a message of ", left_, " bytes is longer than ", max_bytes_);
  }
  if (prefix_[0] > 1) return Internal("a message has flag ", int{prefix_[0]}, ", not 0 or 1");
  if (prefix_[0] == 0) return OkStatus();
  Compression compression = Compression::kNone;
  Status status = CompressionNamed(encoding_, &compression);
  message_.set_compression(compression);
  return status;
}

void MessageReader::Keep(const std::shared_ptr<const void>& owner, const uint8_t* data,
                         size_t size) {
  message_.Append(owner, data, size);
  room_bytes_ = 0;
}

void MessageReader::Copy(const uint8_t* data, size_t size) {
  if (room_bytes_ == 0) {
    const size_t room =
        std::min(left_, std::max(size, std::clamp(message_.size(), kMinRoom, kMaxRoom)));
    std::shared_ptr<uint8_t[]> block(new uint8_t[room]);
    room_ = block.get();
    room_bytes_ = room;
    message_.Append(std::move(block), room_, 0);
  }
  const size_t fits = std::min(size, room_bytes_);
  std::memcpy(room_, data, fits);
  message_.Extend(fits);
  room_ += fits;
  room_bytes_ -= fits;
  if (fits == size) return;
  left_ -= fits;
  Copy(data + fits, size - fits);
  left_ += fits;
}

Message MessageReader::Take() {
  prefix_bytes_ = 0;
  room_bytes_ = 0;
  return std::exchange(message_, Message());
}

void MessageWriter::Begin(Message message) {
  message_ = std::move(message);
  prefix_ = PrefixOf(message_.size(), message_.compression() != Compression::kNone);
  has_message_ = true;
  sent_ = slice_ = of_slice_ = 0;
}

size_t MessageWriter::Copy(uint8_t* out, size_t size) {
  if (!has_bytes_left()) return 0;
  size_t copied = 0;
  if (sent_ < prefix_.size()) {
    copied = std::min(size, prefix_.size() - sent_);
    std::memcpy(out, prefix_.data() + sent_, copied);
  }
  while (copied < size && slice_ < message_.slices().size()) {
    const Slice& slice = message_.slices()[slice_];
    const size_t piece = std::min(size - copied, slice.size - of_slice_);
    if (piece > 0) std::memcpy(out + copied, slice.data + of_slice_, piece);
    copied += piece;
    of_slice_ += piece;
    if (of_slice_ == slice.size) {
      ++slice_;
      of_slice_ = 0;
    }
  }
  sent_ += copied;
  return copied;
}

Status MakePlainBlock(size_t bytes, std::shared_ptr<uint8_t[]>* block) {
  block->reset(new uint8_t[bytes]);
  return OkStatus();
}

Status Inflate(size_t max_bytes, Message* message, const MakeBlock& make_block) {
  if (message->compression() == Compression::kNone) return OkStatus();
  return WithinMemory([&] {
    Message inflated;
    std::shared_ptr<uint8_t[]> block;
    Status status = colcast::Inflate(
        message->slices(), max_bytes,
        [&](size_t size, uint8_t** room) {
          Status made = make_block(size, &block);
          *room = block.get();
          return made;
        },
        [&](size_t size) { inflated.Append(block, block.get(), size); });
    if (status.ok()) *message = std::move(inflated);
    if (status.code == StatusCode::kInvalidArgument) status.code = StatusCode::kInternal;
    return status;
  });
}

}  // namespace colcast::http2
