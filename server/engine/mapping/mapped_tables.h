// The tensors of a session's checkpoint that are read where they lie: in its mapped files.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_MAPPED_TABLES_H_
#define COLCAST_SERVER_ENGINE_MAPPING_MAPPED_TABLES_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/tables/mapped_file.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"

namespace colcast::engine {

// A tensor of a checkpoint in a mapped file.
struct MappedTable {
  std::string name;  // the checkpoint's
  std::shared_ptr<const tables::MappedFile> file;
  size_t offset = 0;
  size_t size = 0;
  uint32_t checksum = 0;                        // CRC-32C, masked
  mutable std::atomic<bool> is_checked{false};  // its bytes have the checksum

  const char* data() const { return file->bytes().data() + offset; }
};

// Reads the whole table. DATA_LOSS, which its file remembers, if its bytes are not those that were
// saved; CANCELLED if `stop` becomes true.
absl::Status CheckBytes(const MappedTable& table, const std::atomic<bool>& stop);

class MappedTables final : public tensorflow::ResourceBase {
 public:
  // Of a session; made if there is none.
  static absl::StatusOr<tensorflow::core::RefCountPtr<MappedTables>> In(
      tensorflow::ResourceMgr* resources);
  // Null if there is none.
  static tensorflow::core::RefCountPtr<MappedTables> Of(tensorflow::Session* session);

  // Makes `*tensor` the one called `name` in the checkpoint `prefix`, in place: that of another
  // model's mapped table if name, type, shape and checksum are the same. False if it cannot be
  // mapped: it has under `least_bytes`, is saved in slices, or its values are no plain bytes.
  // DATA_LOSS if it does not lie within its file.
  absl::StatusOr<bool> Map(tensorflow::BundleReader* checkpoint, const std::string& prefix,
                           const std::string& name, int64_t least_bytes,
                           tensorflow::Tensor* tensor);

  // The table whose bytes a tensor has; null for any other tensor.
  std::shared_ptr<const MappedTable> Find(const tensorflow::Tensor& tensor) const;
  std::vector<std::shared_ptr<const MappedTable>> tables() const;

  // A table that is not read any more.
  void Drop(const MappedTable& table);

  // Whether what was read of the tables until now may be used: DATA_LOSS if a file was changed.
  // REQUIRES that all tables have been mapped and dropped.
  absl::Status Check() const;

  std::string DebugString() const override { return "mapped tables"; }

 private:
  absl::Status Open(const std::string& path, std::shared_ptr<const tables::MappedFile>* file);

  mutable std::mutex mutex_;                                               // of loading
  std::map<const void*, std::shared_ptr<const MappedTable>> tables_;       // by their data
  std::map<std::string, std::weak_ptr<const tables::MappedFile>> opened_;  // by path
  std::vector<std::shared_ptr<const tables::MappedFile>> files_;           // of the tables
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_MAPPED_TABLES_H_
