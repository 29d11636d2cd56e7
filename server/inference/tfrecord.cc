#include "server/inference/tfrecord.h"

#include <array>
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

// The remainders, for the Castagnoli polynomial, of each byte followed by 0 to 7 zero bytes.
using Remainders = std::array<std::array<uint32_t, 256>, sizeof(uint64_t)>;
constexpr Remainders kRemainders = [] {
  Remainders remainders{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 == 0 ? 0 : 0x82F63B78);
    remainders[0][byte] = crc;
  }
  for (size_t zeros = 1; zeros < remainders.size(); ++zeros) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = remainders[zeros - 1][byte];
      remainders[zeros][byte] = crc >> 8 ^ remainders[0][crc & 0xff];
    }
  }
  return remainders;
}();

}  // namespace

uint32_t MaskedCrc32c(std::string_view data) {
  uint32_t crc = ~0u;
  for (uint64_t word; data.size() >= sizeof(word); data.remove_prefix(sizeof(word))) {
    std::memcpy(&word, data.data(), sizeof(word));
    word ^= crc;
    crc = 0;
    for (const auto& remainders : kRemainders) {
      crc ^= remainders[word >> 56];
      word <<= 8;
    }
  }
  for (const char c : data) {
    crc = crc >> 8 ^ kRemainders[0][(crc ^ static_cast<uint8_t>(c)) & 0xff];
  }
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
