#include "server/http2/inflate.h"

#include <algorithm>
#include <utility>

#include "server/base/status.h"
#include "server/wire/inflater.h"

namespace colcast::http2 {
namespace {

constexpr size_t kMinBlockBytes = 4 << 10;
constexpr size_t kMaxBlockBytes = 1 << 20;

// Fills blocks of growing size, up to kMaxBlockBytes.
Status Read(Inflater* inflater, size_t max_bytes, const MakeBlock& make_block, Message* inflated) {
  for (;;) {
    const size_t written = inflated->size();
    // One byte beyond the limit, to detect longer messages.
    size_t size =
        1 + std::min(max_bytes - written, std::clamp(written, kMinBlockBytes, kMaxBlockBytes));
    std::shared_ptr<uint8_t[]> block;
    if (Status status = make_block(size, &block); !status.ok()) return status;
    if (Status status = inflater->Read(block.get(), &size); !status.ok()) return status;
    if (size == 0) return OkStatus();
    const uint8_t* const data = block.get();
    inflated->Append(std::move(block), data, size);
  }
}

}  // namespace

Status MakePlainBlock(size_t bytes, std::shared_ptr<uint8_t[]>* block) {
  block->reset(new uint8_t[bytes]);
  return OkStatus();
}

Status Inflate(size_t max_bytes, Message* message, const MakeBlock& make_block) {
  if (message->compression() == Compression::kNone) return OkStatus();
  return WithinMemory([&] {
    const bool gzip = message->compression() == Compression::kGzip;
    Inflater inflater(message->slices(), gzip ? Inflater::Format::kGzip : Inflater::Format::kZlib,
                      max_bytes);
    Message inflated;
    Status status = Read(&inflater, max_bytes, make_block, &inflated);
    if (status.ok()) *message = std::move(inflated);
    if (status.code == StatusCode::kInvalidArgument) status.code = StatusCode::kInternal;
    return status;
  });
}

}  // namespace colcast::http2
