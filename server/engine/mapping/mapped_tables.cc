#include "server/engine/mapping/mapped_tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/session_resources.h"
#include "server/engine/status.h"
#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"
#include "tensorflow/core/util/overflow.h"
#include "tensorflow/core/util/saved_tensor_slice_util.h"
#include "tensorflow/core/util/tensor_bundle/naming.h"
#include "xla/tsl/lib/hash/crc32c.h"

namespace colcast::engine {
namespace {

using tables::MappedFile;
using tensorflow::BundleEntryProto;
using tensorflow::BundleReader;
using tensorflow::Tensor;
using tensorflow::core::RefCountPtr;

constexpr char kResource[] = "colcast_mapped_tables";

class MappedBuffer final : public tensorflow::TensorBuffer {
 public:
  explicit MappedBuffer(std::shared_ptr<const MappedTable> table)
      : TensorBuffer(const_cast<char*>(table->data())), table_(std::move(table)) {}

  size_t size() const override { return table_->size; }
  TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(tensorflow::AllocationDescription* description) const override {
    description->set_requested_bytes(static_cast<int64_t>(size()));
    description->set_allocator_name("mapped file");
  }
  bool OwnsMemory() const override { return false; }  // so that no op reuses it for its output

 private:
  const std::shared_ptr<const MappedTable> table_;
};

// The tables of all models in this process, by keys that identify their bytes.
class SharedTables {
 public:
  std::shared_ptr<const MappedTable> FindOrAdd(const std::string& key,
                                               std::shared_ptr<const MappedTable> made) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::weak_ptr<const MappedTable>& known = tables_[key];
    std::shared_ptr<const MappedTable> found = known.lock();
    if (found != nullptr && found->file->Check().ok()) return found;
    known = made;
    for (auto each = tables_.begin(); each != tables_.end();) {
      each = each->second.expired() ? tables_.erase(each) : std::next(each);
    }
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const MappedTable>> tables_;
};

absl::Status ReadEntry(BundleReader* checkpoint, const std::string& name,
                       google::protobuf::Message* entry) {
  checkpoint->Seek(name);
  if (checkpoint->Valid() && checkpoint->key() == name &&
      entry->ParseFromString(std::string(checkpoint->value()))) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("Key ", name, " not found in checkpoint"));
}

// The key of a tensor's slice, or of the whole tensor if `slice` is empty or covers it. Sets
// `*shape` to the shape that the slice must have.
absl::StatusOr<std::string> KeyOf(const std::string& name, const std::string& slice,
                                  tensorflow::TensorShape* shape) {
  if (slice.empty()) return name;
  tensorflow::TensorShape whole;
  tensorflow::TensorSlice parsed;
  absl::Status status = tensorflow::checkpoint::ParseShapeAndSlice(slice, &whole, &parsed, shape);
  if (!status.ok()) return status;
  return parsed.IsFull() ? name : tensorflow::checkpoint::EncodeTensorNameSlice(name, parsed);
}

}  // namespace

absl::Status CheckBytes(const MappedTable& table, const StopFlag& stop) {
  constexpr size_t kAtOnce = size_t{4} << 20;
  const MappedFile& file = *table.file;
  std::string copy(file.reads_sparingly() ? kAtOnce : 0, '\0');
  uint32_t sum = 0;
  for (size_t done = 0; done < table.size; done += kAtOnce) {
    if (stop.IsSet()) return absl::CancelledError("the model is unloaded");
    const size_t size = std::min(kAtOnce, table.size - done);
    const char* bytes = table.data() + done;
    if (!copy.empty()) {
      if (!file.CopyAndEvict(table.offset + done, size, copy.data())) file.SetFailed();
      bytes = copy.data();
    }
    sum = tsl::crc32c::Extend(sum, bytes, size);
  }
  if (tsl::crc32c::Mask(sum) != table.checksum) table.file->SetFailed();
  if (table.file->has_failed()) {
    return absl::DataLossError(
        absl::StrCat("table ", table.name, ": ", table.file->Check().message));
  }
  table.is_checked = true;
  return absl::OkStatus();
}

MappedTables::~MappedTables() {
  for (const auto& file : files_) file->RemoveModel();
}

absl::StatusOr<RefCountPtr<MappedTables>> MappedTables::In(tensorflow::ResourceMgr* resources) {
  return FindOrMakeResource<MappedTables>(resources, kResource);
}

RefCountPtr<MappedTables> MappedTables::Of(tensorflow::Session* session) {
  const absl::StatusOr<tensorflow::ResourceMgr*> resources = ResourcesOf(session);
  return resources.ok() ? FindResource<MappedTables>(*resources, kResource) : nullptr;
}

absl::StatusOr<bool> MappedTables::Map(BundleReader* checkpoint, const std::string& prefix,
                                       const std::string& name, const std::string& slice,
                                       int64_t least_bytes, Tensor* tensor) {
  static SharedTables* const shared = new SharedTables;
  tensorflow::BundleHeaderProto header;
  BundleEntryProto entry;
  tensorflow::TensorShape shape, of_slice;
  const absl::StatusOr<std::string> stored = KeyOf(name, slice, &of_slice);
  if (!stored.ok()) return stored.status();
  if (*stored != name && !checkpoint->Contains(*stored)) return false;  // saved in other slices
  for (const auto& [key, message] :
       {std::pair<std::string, google::protobuf::Message*>{"", &header}, {*stored, &entry}}) {
    if (absl::Status status = ReadEntry(checkpoint, key, message); !status.ok()) return status;
  }
  absl::Status status = tensorflow::TensorShape::BuildTensorShape(entry.shape(), &shape);
  if (!status.ok()) return status;
  const int64_t bytes = tensorflow::MultiplyWithoutOverflow(
      shape.num_elements(), tensorflow::DataTypeSize(entry.dtype()));  // negative on overflow
  if (header.endianness() != tensorflow::BundleHeaderProto::LITTLE || entry.slices_size() > 0 ||
      !tensorflow::DataTypeCanUseMemcpy(entry.dtype()) || bytes != entry.size() || bytes <= 0 ||
      bytes < least_bytes || (!slice.empty() && shape != of_slice)) {
    return false;
  }
  auto table = std::make_shared<MappedTable>();
  status =
      Open(tensorflow::DataFilename(prefix, entry.shard_id(), header.num_shards()), &table->file);
  if (!status.ok()) return status;
  const auto in_file = static_cast<int64_t>(table->file->bytes().size());
  if (entry.offset() < 0 || entry.offset() > in_file || bytes > in_file - entry.offset()) {
    return absl::DataLossError(
        absl::StrCat("table ", name, ": ", bytes, " bytes at offset ", entry.offset(), " of ",
                     table->file->path(), ", which has ", in_file, ": is it still being copied?"));
  }
  table->name = slice.empty() ? name : absl::StrCat(name, " [", slice, "]");
  table->dtype = entry.dtype();
  table->shape = shape;
  table->offset = entry.offset();
  table->size = bytes;
  table->checksum = entry.crc32c();
  const std::string key = absl::StrCat(table->name, "\n", entry.dtype(), "\n", shape.DebugString(),
                                       "\n", entry.crc32c());
  const std::shared_ptr<const MappedTable> used = shared->FindOrAdd(key, std::move(table));
  const std::lock_guard<std::mutex> lock(mutex_);
  tables_[used->data()] = used;
  if (std::find(files_.begin(), files_.end(), used->file) == files_.end()) {
    files_.push_back(used->file);
    used->file->AddModel();
  }
  *tensor =
      Tensor(entry.dtype(), shape, RefCountPtr<tensorflow::TensorBuffer>(new MappedBuffer(used)));
  return true;
}

absl::Status MappedTables::Open(const std::string& path, std::shared_ptr<const MappedFile>* file) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::weak_ptr<const MappedFile>& known = opened_[path];
  *file = known.lock();
  if (*file != nullptr) return absl::OkStatus();
  if (Status status = MappedFile::Open(path, file); !status.ok()) return ToAbsl(status);
  known = *file;
  return absl::OkStatus();
}

std::shared_ptr<const MappedTable> MappedTables::Find(const Tensor& tensor) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = tables_.find(tensor.data());
  return found == tables_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<const MappedTable>> MappedTables::tables() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<const MappedTable>> tables;
  for (const auto& [data, table] : tables_) tables.push_back(table);
  return tables;
}

void MappedTables::Drop(const MappedTable& table) {
  const std::lock_guard<std::mutex> lock(mutex_);
  table.file->Leave(table.offset, table.size);
  const std::shared_ptr<const MappedFile> file = table.file;
  tables_.erase(table.data());
  const bool is_used = std::any_of(tables_.begin(), tables_.end(),
                                   [&](const auto& other) { return other.second->file == file; });
  if (is_used) return;
  files_.erase(std::remove(files_.begin(), files_.end(), file), files_.end());
  file->RemoveModel();
}

absl::Status MappedTables::Check() const {
  for (const auto& file : files_) {
    if (Status status = file->Check(); !status.ok()) return ToAbsl(status);
  }
  return absl::OkStatus();
}

}  // namespace colcast::engine
