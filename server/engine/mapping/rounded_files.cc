#include "server/engine/mapping/rounded_files.h"

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
#include "server/engine/rewrites/rounded_table.h"
#include "server/engine/rewrites/rounded_tables.h"
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

// Checks a tensor's type and shape before reading it, because TensorFlow trusts the file's.
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
                      RoundedRows* rounded) {
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
    rounded->kept[ids.flat<int64_t>()(i)].assign(row, row + width);
  }
  return absl::OkStatus();
}

// Adds a variable's table, if the files have one, and its size to `*bytes`.
absl::Status Add(const std::string& variable, DataType row_type, const std::string& prefix,
                 BundleReader* files, MappedTables* tables, ResourceMgr* resources,
                 int64_t* bytes) {
  const std::string name = kRows + variable;
  if (!files->Contains(name)) return absl::OkStatus();
  Var* found = nullptr;
  absl::Status status = resources->Lookup(resources->default_container(), variable, &found);
  if (!status.ok()) return status;
  const tensorflow::core::RefCountPtr<Var> held(found);
  const Tensor floats = *held->tensor();
  if (floats.dtype() != tensorflow::DT_FLOAT || floats.dims() != 2) {
    return Differs(variable, floats.dtype(), floats.shape(), "a matrix of float");
  }
  auto forms = RoundedTables::In(resources);
  if (!forms.ok()) return forms.status();
  Tensor packed;
  const absl::StatusOr<bool> mapped = tables->Map(files, prefix, name, 1, &packed);
  if (!mapped.ok()) return mapped.status();
  const std::shared_ptr<const MappedTable> table = *mapped ? tables->Find(packed) : nullptr;
  const int64_t rows = floats.dim_size(0), width = floats.dim_size(1);
  const TensorShape shape({rows, RoundedRows::ValuesInRow(row_type, width)});
  if (table == nullptr || table->dtype != row_type || table->shape != shape) {
    return Differs(name, packed.dtype(), packed.shape(),
                   DataTypeString(row_type) + shape.DebugString());
  }
  status = CheckBytes(*table, StopFlag());
  RoundedRows rounded{row_type, {table, table->data()}, {}};
  if (status.ok()) status = ReadKept(files, variable, rows, width, &rounded);
  if (!status.ok()) return status;
  auto made = std::make_shared<const RoundedTable>(static_cast<const float*>(floats.data()), rows,
                                                   width, std::move(rounded));
  if (!made->IsComplete()) {
    return absl::DataLossError(absl::StrCat("the rows of ", name,
                                            " without a scale are not those that ", kKeptIds,
                                            variable, " lists"));
  }
  (*forms)->Add(resources->default_container(), variable, std::move(made));
  *bytes += static_cast<int64_t>(table->size);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MapAll(const std::string& directory, const std::string& prefix,
                                   const RowTypes& variables, MappedTables* tables,
                                   ResourceMgr* resources) {
  absl::Status status = CheckFiles(std::filesystem::path(prefix).parent_path());
  if (!status.ok()) return status;
  BundleReader files(tensorflow::Env::Default(), prefix);
  status = files.status();
  if (status.ok()) status = CheckCheckpoint(directory, &files);
  int64_t bytes = 0;
  for (const auto& [variable, type] : variables) {
    if (status.ok()) status = Add(variable, type, prefix, &files, tables, resources, &bytes);
  }
  if (!status.ok()) return status;
  if (bytes == 0) return "";
  return absl::StrFormat("%.3g GB of tables in %s mapped from %s.index",
                         static_cast<double>(bytes) * 1e-9,
                         DataTypeString(variables.begin()->second), prefix);
}

}  // namespace

absl::StatusOr<std::string> MapRoundedTables(const std::string& directory,
                                             const RowTypes& variables,
                                             tensorflow::Session* session) {
  if (variables.empty()) return "";
  const std::string prefix =
      absl::StrCat(directory, "/", DataTypeString(variables.begin()->second), "/tables");
  std::error_code error;
  if (!std::filesystem::exists(prefix + ".index", error)) return "";
  const absl::StatusOr<ResourceMgr*> resources = ResourcesOf(session);
  if (!resources.ok()) return resources.status();
  const auto tables = MappedTables::In(*resources);
  if (!tables.ok()) return tables.status();
  const auto before = (*tables)->tables();
  absl::StatusOr<std::string> note = "";
  // Memory may run out, because an index may claim any size for a block.
  const Status caught = RunCaught("reading", [&] {
    note = MapAll(directory, prefix, variables, tables->get(), *resources);
    return OkStatus();
  });
  if (!caught.ok()) note = ToAbsl(caught);
  if (note.ok()) return note;
  if (auto forms = RoundedTables::In(*resources); forms.ok()) (*forms)->KeepOnly({});
  for (const auto& table : (*tables)->tables()) {
    if (std::find(before.begin(), before.end(), table) == before.end()) (*tables)->Drop(*table);
  }
  return absl::Status(note.status().code(),
                      absl::StrCat(prefix, ".index: ", note.status().message()));
}

}  // namespace colcast::engine
