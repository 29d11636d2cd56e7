#include "server/inference/tfrecord.h"

#include <array>

namespace colcast::inference {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kLengthBytes = 8;
constexpr size_t kChecksumBytes = 4;

// CRC-32C of each byte, by the reversed Castagnoli polynomial.
constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

}  // namespace

uint32_t MaskedCrc32c(std::string_view data) {
  uint32_t crc = ~0u;
  for (const char c : data) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

TfRecordReader::TfRecordReader(const std::string& path)
    : path_(path), file_(path, std::ios::binary | std::ios::ate) {
  if (!file_) return;
  size_ = static_cast<uint64_t>(file_.tellg());
  file_.seekg(0);
}

Status TfRecordReader::Next(std::string* record, bool* at_end) {
  *at_end = position_ == size_;
  if (*at_end) return OkStatus();
  std::string header(kHeaderBytes, '\0');
  if (!file_.read(header.data(), kHeaderBytes)) return Damaged("the file ends within its length");
  const std::string_view length_bytes(header.data(), kLengthBytes);
  if (LittleEndian(header.substr(kLengthBytes)) != MaskedCrc32c(length_bytes)) {
    return Damaged("the checksum of its length is wrong");
  }
  const uint64_t length = LittleEndian(length_bytes);
  const uint64_t left = size_ - position_ - kHeaderBytes;
  if (left < kChecksumBytes || length > left - kChecksumBytes) {
    return Damaged("the file ends within its data");
  }
  record->resize(length);
  std::string checksum(kChecksumBytes, '\0');
  if (!file_.read(record->data(), static_cast<std::streamsize>(length)) ||
      !file_.read(checksum.data(), kChecksumBytes)) {
    return Damaged("it cannot be read");
  }
  if (LittleEndian(checksum) != MaskedCrc32c(*record)) {
    return Damaged("the checksum of its data is wrong");
  }
  position_ += kHeaderBytes + length + kChecksumBytes;
  return OkStatus();
}

Status TfRecordReader::Damaged(const char* what) const {
  return Error(StatusCode::kDataLoss, path_, ": the record at byte ", position_,
               " is no TFRecord: ", what);
}

}  // namespace colcast::inference
