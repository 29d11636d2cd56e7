#include "server/engine/mapping/int8_files.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/file.h"
#include "server/base/thread.h"
#include "server/engine/mapping/mapped_tables.h"
#include "server/engine/rewrites/lookup_tables.h"
#include "server/engine/session_resources.h"
#include "server/engine/status.h"
#include "tensorflow/core/framework/resource_var.h"

namespace colcast::engine {
namespace {

using tensorflow::BundleReader;
using tensorflow::DataType;
using tensorflow::ResourceMgr;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::Var;

constexpr char kCheckpoint[] = "checkpoint";  // the tensor with the bytes of variables.index
constexpr char kRows[] = "rows/", kKeptIds[] = "kept_ids/", kKeptRows[] = "kept_rows/";

absl::Status Differs(const std::string& name, DataType type, const TensorShape& shape,
                     const std::string& expected) {
  return absl::DataLossError(absl::StrCat("tensor ", name, " is ", DataTypeString(type),
                                          shape.DebugString(), ", expected ", expected));
}

// Checks a tensor's type and shape before reading it, because TensorFlow trusts the file.
absl::Status Read(BundleReader* files, const std::string& name, DataType type,
                  const TensorShape& shape, Tensor* tensor) {
  DataType found;
  TensorShape found_shape;
  absl::Status status = files->LookupDtypeAndShape(name, &found, &found_shape);
  if (!status.ok()) return status;
  if (found != type || found_shape != shape) {
    return Differs(name, found, found_shape,
                   absl::StrCat(DataTypeString(type), shape.DebugString()));
  }
  *tensor = Tensor(type, shape);
  if (!tensor->IsInitialized()) return absl::ResourceExhaustedError("no memory for " + name);
  return files->Lookup(name, tensor);
}

// Refuses pipes and devices: TensorFlow would wait for a pipe's writer, and read a device forever.
absl::Status CheckFiles(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    File file;
    if (Status status = File::Open(entry.path(), &file); !status.ok()) return ToAbsl(status);
  }
  return absl::OkStatus();
}

absl::Status CheckCheckpoint(const std::string& directory, BundleReader* files) {
  std::string index;
  Status read = ReadFile(directory + "/variables/variables.index", &index);
  if (!read.ok()) return ToAbsl(read);
  Tensor made_for;
  absl::Status status = Read(files, kCheckpoint, tensorflow::DT_UINT8,
                             TensorShape({static_cast<int64_t>(index.size())}), &made_for);
  if (status.ok() && made_for.tensor_data() == index) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("made for another checkpoint than this version's; export the model again ",
                   status.message()));
}

// Reads the rows that keep their floats, if the files have any.
absl::Status ReadKept(BundleReader* files, const std::string& variable, int64_t rows, int64_t width,
                      Int8Rows* packed) {
  const std::string name = kKeptIds + variable;
  if (!files->Contains(name)) return absl::OkStatus();
  DataType type;
  TensorShape shape;
  absl::Status status = files->LookupDtypeAndShape(name, &type, &shape);
  if (!status.ok()) return status;
  if (shape.dims() != 1 || shape.dim_size(0) > rows) {
    return Differs(name, type, shape, absl::StrCat("at most ", rows, " ids"));
  }
  Tensor ids, values;
  status = Read(files, name, tensorflow::DT_INT64, shape, &ids);
  if (!status.ok()) return status;
  status = Read(files, kKeptRows + variable, tensorflow::DT_FLOAT,
                TensorShape({shape.dim_size(0), width}), &values);
  if (!status.ok()) return status;
  const float* row = values.flat<float>().data();
  for (int64_t i = 0; i < ids.NumElements(); ++i, row += width) {
    packed->kept[ids.flat<int64_t>()(i)].assign(row, row + width);
  }
  return absl::OkStatus();
}

// Maps a variable's table and adds it to `forms`. Returns its size in bytes; 0 if the files do not
// have it, or if nothing restored the variable.
absl::StatusOr<int64_t> Add(const std::string& variable, const std::string& prefix,
                            BundleReader* files, MappedTables* tables, ResourceMgr* resources,
                            Int8Tables* forms) {
  const std::string name = kRows + variable;
  const tensorflow::core::RefCountPtr<Var> held = FindResource<Var>(resources, variable);
  if (!files->Contains(name) || held == nullptr) return 0;
  const Tensor floats = *held->tensor();
  if (floats.dtype() != tensorflow::DT_FLOAT || floats.dims() != 2) {
    return Differs(variable, floats.dtype(), floats.shape(), "a matrix of float");
  }
  Tensor packed;
  const absl::StatusOr<bool> mapped = tables->Map(files, prefix, name, "", 1, &packed);
  if (!mapped.ok()) return mapped.status();
  const std::shared_ptr<const MappedTable> table = *mapped ? tables->Find(packed) : nullptr;
  const int64_t rows = floats.dim_size(0), width = floats.dim_size(1);
  const TensorShape shape({rows, Int8Rows::kScaleBytes + width});
  if (table == nullptr || table->dtype != tensorflow::DT_INT8 || table->shape != shape) {
    return Differs(name, packed.dtype(), packed.shape(), "int8" + shape.DebugString());
  }
  absl::Status status = CheckBytes(*table, StopFlag());
  Int8Rows form{{table, table->data()}, {}};
  if (status.ok()) status = ReadKept(files, variable, rows, width, &form);
  if (!status.ok()) return status;
  auto made = std::make_shared<const Int8Table>(static_cast<const float*>(floats.data()), rows,
                                                width, std::move(form));
  if (!made->IsComplete()) {
    return absl::DataLossError(absl::StrCat("the rows of ", name,
                                            " without a scale are not those that ", kKeptIds,
                                            variable, " lists"));
  }
  forms->Add(variable, std::move(made));
  return static_cast<int64_t>(table->size);
}

absl::StatusOr<Int8Files> MapAll(const std::string& directory, const std::string& prefix,
                                 const std::set<std::string>& variables, MappedTables* tables,
                                 ResourceMgr* resources, Int8Tables* forms) {
  std::error_code error;
  if (!std::filesystem::exists(prefix + ".index", error)) {
    return absl::NotFoundError("no such file; export the model with --table-type int8");
  }
  absl::Status status = CheckFiles(std::filesystem::path(prefix).parent_path());
  if (!status.ok()) return status;
  BundleReader files(tensorflow::Env::Default(), prefix);
  status = files.status();
  if (status.ok()) status = CheckCheckpoint(directory, &files);
  if (!status.ok()) return status;
  Int8Files mapped;
  int64_t bytes = 0;
  for (const std::string& variable : variables) {
    const auto added = Add(variable, prefix, &files, tables, resources, forms);
    if (!added.ok()) return added.status();
    if (*added > 0) mapped.tables.insert(variable);
    bytes += *added;
  }
  mapped.note = absl::StrFormat("%.3g GB of tables in int8 mapped from %s.index",
                                static_cast<double>(bytes) * 1e-9, prefix);
  return mapped;
}

// Removes the variable's int8 table and its mapping.
void Remove(const std::string& variable, MappedTables* mapped, Int8Tables* forms) {
  const auto form = forms->Find(variable);
  if (!form.ok()) return;
  for (const auto& table : mapped->tables()) {
    if (table->data() == (*form)->packed()) mapped->Drop(*table);
  }
  forms->Remove(variable);
}

}  // namespace

absl::StatusOr<Int8Files> MapInt8Tables(const std::string& directory,
                                        const std::set<std::string>& variables,
                                        tensorflow::Session* session) {
  const std::string prefix = directory + "/int8/tables";
  const absl::StatusOr<ResourceMgr*> resources = ResourcesOf(session);
  if (!resources.ok()) return resources.status();
  const auto tables = MappedTables::In(*resources);
  if (!tables.ok()) return tables.status();
  const auto forms = Int8Tables::In(*resources);
  if (!forms.ok()) return forms.status();
  const auto before = (*tables)->tables();
  absl::StatusOr<Int8Files> mapped = Int8Files();
  // Memory may run out, because an index may claim any size for a block.
  const Status caught = RunCaught("reading", [&] {
    mapped = MapAll(directory, prefix, variables, tables->get(), *resources, forms->get());
    return OkStatus();
  });
  if (!caught.ok()) mapped = ToAbsl(caught);
  if (mapped.ok()) return mapped;
  for (const std::string& variable : variables) (*forms)->Remove(variable);
  for (const auto& table : (*tables)->tables()) {
    if (std::find(before.begin(), before.end(), table) == before.end()) (*tables)->Drop(*table);
  }
  return absl::Status(mapped.status().code(),
                      absl::StrCat(prefix, ".index: ", mapped.status().message()));
}

std::vector<std::string> KeepReadForms(const std::set<std::string>& int8_tables,
                                       const std::map<std::string, TablesRead>& served,
                                       tensorflow::Session* session) {
  const absl::StatusOr<ResourceMgr*> resources = ResourcesOf(session);
  if (int8_tables.empty() || !resources.ok()) return {};
  const auto mapped = MappedTables::In(*resources);
  const auto forms = Int8Tables::In(*resources);
  if (!mapped.ok() || !forms.ok()) return {};
  std::set<std::string> in_int8;
  std::map<std::string, std::string> float32;  // for each variable, a signature that reads it
  for (const auto& [signature, read] : served) {
    in_int8.insert(read.int8.begin(), read.int8.end());
    for (const std::string& variable : read.float32) float32.emplace(variable, signature);
  }
  std::map<std::string, int> kept;  // signature -> number of tables kept for it
  int freed = 0;
  for (const std::string& name : int8_tables) {
    if (in_int8.count(name) == 0) {
      Remove(name, mapped->get(), forms->get());
    } else if (const auto reader = float32.find(name); reader != float32.end()) {
      ++kept[reader->second];
    } else if ((*resources)->Delete<Var>((*resources)->default_container(), name).ok()) {
      ++freed;
    }
  }
  std::vector<std::string> notes;
  for (const auto& [signature, count] : kept) {
    notes.push_back(absl::StrCat(count, count == 1 ? " table stays" : " tables stay",
                                 " in float32 as well: signature \"", signature,
                                 "\" reads float32"));
  }
  if (freed > 0) {
    notes.push_back(absl::StrCat(freed, freed == 1 ? " table" : " tables", " in int8 alone"));
  }
  return notes;
}

}  // namespace colcast::engine
