// Reads and writes TFRecord files. A record consists of the data's length (8 bytes), a checksum of
// the length (4), the data, and a checksum of the data (4), all little-endian. The checksums are
// masked CRC-32Cs (https://www.tensorflow.org/tutorials/load_data/tfrecord).
#ifndef COLCAST_SERVER_INFERENCE_TFRECORD_H_
#define COLCAST_SERVER_INFERENCE_TFRECORD_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "server/base/file.h"
#include "server/base/status.h"

namespace colcast::inference {

class TfRecordReader {
 public:
  // A missing file is treated as empty.
  explicit TfRecordReader(const std::string& path);

  // Reads the next record, or sets `at_end` after the last one. Returns DATA_LOSS, naming the file
  // and the record's offset, if the record is truncated or a checksum is wrong. Also returns the
  // errors of File::Open().
  Status Next(std::string* record, bool* at_end);

 private:
  Status Damaged(const char* what) const;

  const std::string path_;
  File file_;
  Status opened_;
  uint64_t position_ = 0;  // position of the next record
};

// Encodes `data` as a record.
std::string TfRecord(std::string_view data);

uint32_t MaskedCrc32c(std::string_view data);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_TFRECORD_H_
