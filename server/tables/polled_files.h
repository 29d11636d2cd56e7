// Polls for files. Each file is read into memory, so that later changes to it have no effect.
#ifndef COLCAST_SERVER_TABLES_POLLED_FILES_H_
#define COLCAST_SERVER_TABLES_POLLED_FILES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "server/base/file.h"
#include "server/base/status.h"
#include "server/tables/safetensors.h"

namespace colcast::tables {

// The file name of the delta with this number.
std::string DeltaName(int64_t sequence);

// The number of deltas in a folder, up to the first that is missing.
int64_t DeltasIn(const std::string& folder);

// Returns FAILED_PRECONDITION unless the delta's metadata says, in `entry`, that it was made for
// the table or checkpoint with this checksum.
Status CheckMadeFor(const std::string& checksum, const char* entry, Safetensors* delta);

// Used by one thread.
class PolledFiles {
 public:
  using UseFile = std::function<Status(Safetensors*)>;

  // Every file must have this format.
  explicit PolledFiles(std::string format) : format_(std::move(format)) {}

  // Reads a file and passes it to `use`. All errors name the file. A refused file is not read again
  // until it is replaced, unless it was refused for lack of memory.
  Status Use(const std::string& path, const FileIdentity& id, const UseFile& use);

  // Passes the files delta-000001.safetensors, ... of a folder to `use`, starting after the first
  // `applied` ones, until a file is missing or refused. Each file must contain its own number.
  Status UseDeltas(const std::string& folder, int64_t applied, const UseFile& use);

 private:
  const std::string format_;
  std::map<std::string, std::pair<FileIdentity, Status>> refused_;  // by path
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_POLLED_FILES_H_
