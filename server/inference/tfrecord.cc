#include "server/inference/tfrecord.h"

#ifdef __aarch64__
#include <arm_acle.h>
#else
#include <nmmintrin.h>
#endif

#include <cstring>

namespace colcast::inference {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kLengthBytes = 8;
constexpr size_t kChecksumBytes = 4;

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

void AppendLittleEndian(uint64_t value, size_t bytes, std::string* text) {
  for (; bytes > 0; --bytes, value >>= 8) *text += static_cast<char>(value);
}

// CRC instructions are always available: TensorFlow's wheel needs AVX on x86, which implies SSE
// 4.2, and ARM64 server CPUs have them.
#ifdef __aarch64__
#define COLCAST_WITH_CRC32C __attribute__((target("+crc")))
COLCAST_WITH_CRC32C uint32_t ExtendCrc(uint32_t crc, uint64_t word) { return __crc32cd(crc, word); }
COLCAST_WITH_CRC32C uint32_t AddByte(uint32_t crc, uint8_t byte) { return __crc32cb(crc, byte); }
#else
#define COLCAST_WITH_CRC32C __attribute__((target("sse4.2")))
COLCAST_WITH_CRC32C uint32_t ExtendCrc(uint32_t crc, uint64_t word) {
  return static_cast<uint32_t>(_mm_crc32_u64(crc, word));
}
COLCAST_WITH_CRC32C uint32_t AddByte(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }
#endif

}  // namespace

COLCAST_WITH_CRC32C uint32_t MaskedCrc32c(std::string_view data) {
  uint32_t crc = ~0u;
  uint64_t word;
  for (; data.size() >= sizeof(word); data.remove_prefix(sizeof(word))) {
    std::memcpy(&word, data.data(), sizeof(word));
    crc = ExtendCrc(crc, word);
  }
  for (const char c : data) crc = AddByte(crc, static_cast<uint8_t>(c));
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

std::string TfRecord(std::string_view data) {
  std::string record;
  record.reserve(kHeaderBytes + data.size() + kChecksumBytes);
  AppendLittleEndian(data.size(), kLengthBytes, &record);
  AppendLittleEndian(MaskedCrc32c(record), kChecksumBytes, &record);
  record += data;
  AppendLittleEndian(MaskedCrc32c(data), kChecksumBytes, &record);
  return record;
}

TfRecordReader::TfRecordReader(const std::string& path)
    : path_(path), opened_(File::Open(path, &file_)) {
  if (opened_.code == StatusCode::kNotFound) opened_ = OkStatus();
}

Status TfRecordReader::Next(std::string* record, bool* at_end) {
  if (!opened_.ok()) return opened_;
  *at_end = position_ == file_.size();
  if (*at_end) return OkStatus();
  std::string header(kHeaderBytes, '\0');
  if (file_.size() - position_ < kHeaderBytes) return Damaged("the file ends within its length");
  if (Status status = file_.ReadAt(position_, kHeaderBytes, header.data()); !status.ok()) {
    return status;
  }
  const std::string_view length_bytes(header.data(), kLengthBytes);
  if (LittleEndian(header.substr(kLengthBytes)) != MaskedCrc32c(length_bytes)) {
    return Damaged("the checksum of its length is wrong");
  }
  const uint64_t length = LittleEndian(length_bytes);
  const uint64_t left = file_.size() - position_ - kHeaderBytes;
  if (left < kChecksumBytes || length > left - kChecksumBytes) {
    return Damaged("the file ends within its data");
  }
  record->resize(length + kChecksumBytes);
  Status status = file_.ReadAt(position_ + kHeaderBytes, record->size(), record->data());
  if (!status.ok()) return status;
  const std::string checksum = record->substr(length);
  record->resize(length);
  if (LittleEndian(checksum) != MaskedCrc32c(*record)) {
    return Damaged("the checksum of its data is wrong");
  }
  position_ += kHeaderBytes + length + kChecksumBytes;
  return OkStatus();
}

Status TfRecordReader::Damaged(const char* what) const {
  return Error(StatusCode::kDataLoss, path_, ": the record at byte ", position_,
               " is not a TFRecord: ", what);
}

}  // namespace colcast::inference
