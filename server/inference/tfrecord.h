// TFRecord files, read and written: a record is its length (8 bytes), a checksum of the length (4),
// the data, and a checksum of the data (4), all little endian. The checksums are masked CRC-32Cs
// (https://www.tensorflow.org/tutorials/load_data/tfrecord).
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
  // A file that is not there has no records.
  explicit TfRecordReader(const std::string& path);

  // Reads the next record, or sets `at_end` behind the last one. DATA_LOSS, naming the file and the
  // byte where the record begins, for anything else than a whole record with right checksums; as
  // File::Open() where it cannot be read.
  Status Next(std::string* record, bool* at_end);

 private:
  Status Damaged(const char* what) const;

  const std::string path_;
  File file_;
  Status opened_;
  uint64_t position_ = 0;  // of the record to read next
};

// The record that holds `data`, as a file has it.
std::string TfRecord(std::string_view data);

uint32_t MaskedCrc32c(std::string_view data);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_TFRECORD_H_
