// The tensors of a session's checkpoint that are read directly from its mapped files.
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
#include "server/base/thread.h"
#include "server/tables/mapped_file.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"

namespace colcast::engine {

// A tensor of a checkpoint, in a mapped file.
struct MappedTable {
  std::string name;  // the name in the checkpoint
  std::shared_ptr<const tables::MappedFile> file;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  tensorflow::TensorShape shape;
  size_t offset = 0;
  size_t size = 0;
  uint32_t checksum = 0;                        // masked CRC-32C
  mutable std::atomic<bool> is_checked{false};  // whether the bytes matched the checksum

  const char* data() const { return file->bytes().data() + offset; }
};

// Reads the whole table, even if its file was touched. Returns DATA_LOSS, and marks the file as
// failed, if the bytes do not match the saved checksum; CANCELLED if `stop` is set.
absl::Status CheckBytes(const MappedTable& table, const StopFlag& stop);

class MappedTables final : public tensorflow::ResourceBase {
 public:
  ~MappedTables() override;

  // The tables of a session; creates them if there are none.
  static absl::StatusOr<tensorflow::core::RefCountPtr<MappedTables>> In(
      tensorflow::ResourceMgr* resources);
  // Returns null if there are none.
  static tensorflow::core::RefCountPtr<MappedTables> Of(tensorflow::Session* session);

  // Sets `*tensor` to the tensor `name`, mapped from the checkpoint `prefix`, or, unless `slice` is
  // empty, to that slice of it, in RestoreV2's notation. Models share a tensor if name, slice,
  // type, shape and checksum are the same. Returns false if it cannot be mapped: if it has fewer
  // than `least_bytes`, is not saved as one tensor, or has values that are not plain bytes. Returns
  // DATA_LOSS if it extends beyond its file.
  absl::StatusOr<bool> Map(tensorflow::BundleReader* checkpoint, const std::string& prefix,
                           const std::string& name, const std::string& slice, int64_t least_bytes,
                           tensorflow::Tensor* tensor);

  // The table that holds the tensor's bytes; null if there is none.
  std::shared_ptr<const MappedTable> Find(const tensorflow::Tensor& tensor) const;
  std::vector<std::shared_ptr<const MappedTable>> tables() const;

  // Removes a table that is no longer read.
  void Drop(const MappedTable& table);

  // Returns DATA_LOSS if a file has changed; data read from the tables so far must then not be
  // used. REQUIRES that Map() and Drop() do not run at the same time.
  absl::Status Check() const;

  std::string DebugString() const override { return "mapped tables"; }

 private:
  absl::Status Open(const std::string& path, std::shared_ptr<const tables::MappedFile>* file);

  mutable std::mutex mutex_;  // guards the members below, except in Check()
  // Keyed by the address of their data.
  std::map<const void*, std::shared_ptr<const MappedTable>> tables_;
  std::map<std::string, std::weak_ptr<const tables::MappedFile>> opened_;  // by path
  std::vector<std::shared_ptr<const tables::MappedFile>> files_;
};

// Replaces each RestoreV2 in a graph and its functions by ColcastRestore, which maps large tensors
// used only as values of variables. The op exists only in the server; a SavedModel never contains
// it. Tensors smaller than `least_bytes` are restored as usual.
void MapRestored(int64_t least_bytes, tensorflow::GraphDef* graph);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_MAPPED_TABLES_H_
