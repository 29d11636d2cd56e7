#include "server/engine/examples/example_transcoder.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/rows.h"
#include "server/engine/status.h"
#include "server/states/keys.h"
#include "server/wire/column.h"

namespace colcast::engine {
namespace {

using tensorflow::SignatureDef;
using tensorflow::TensorInfo;

constexpr char kDefault[] = "serving_default";
constexpr char kFormerDefault[] = "serving_examples";  // kDefault's name after --make-default

template <typename... Phrase>
absl::Status Unfit(const Phrase&... phrases) {
  return absl::FailedPreconditionError(absl::StrCat(phrases...));
}

const SignatureDef* Find(const SignatureDefs& signatures, const std::string& name) {
  const auto found = signatures.find(name);
  return found == signatures.end() ? nullptr : &found->second;
}

bool TakesExamples(const SignatureDef* signature, const std::string& input) {
  if (signature == nullptr || signature->inputs().size() != 1) return false;
  const auto& [alias, info] = *signature->inputs().begin();
  const auto& shape = info.tensor_shape();
  return alias == input && info.dtype() == tensorflow::DT_STRING &&
         info.encoding_case() == TensorInfo::kName &&
         (shape.unknown_rank() || (shape.dim_size() == 1 && shape.dim(0).size() == -1));
}

bool SameOutputs(const SignatureDef& a, const SignatureDef& b) {
  if (a.outputs().size() != b.outputs().size()) return false;
  for (const auto& [alias, info] : a.outputs()) {
    const auto other = b.outputs().find(alias);
    if (other == b.outputs().end() || other->second.dtype() != info.dtype() ||
        other->second.encoding_case() != TensorInfo::kName ||
        other->second.tensor_shape().SerializeAsString() !=
            info.tensor_shape().SerializeAsString()) {
      return false;
    }
  }
  return true;
}

// A column as the exporter declares it; dimensions that depend on the request are -1.
struct Declared {
  std::string name;
  DataType dtype;
  std::vector<int64_t> dims;
};

std::vector<Declared> ColumnsOf(const ExampleFeatures& features) {
  std::vector<Declared> columns;
  for (size_t i = 0; i < features.size(); ++i) {
    const ExampleFeature& feature = features[i].feature;
    Declared& column = columns.emplace_back(Declared{feature.name, feature.dtype, {-1}});
    if (feature.kind != FeatureKind::kFixedLen) column.dims.push_back(-1);
    column.dims.insert(column.dims.end(), feature.shape.begin(), feature.shape.end());
    if (features[i].length_name.empty()) continue;
    columns.push_back({features[i].length_name, DT_INT64, {-1}});
  }
  return columns;
}

// Whether the signature has exactly these inputs, with any number of rows. Sets `*once` to whether
// each takes a single row.
bool TakesColumns(const SignatureDef* signature, const std::vector<Declared>& columns,
                  std::vector<bool>* once) {
  if (signature == nullptr || signature->inputs().size() != columns.size()) return false;
  once->clear();
  std::set<std::string_view> names;
  for (const Declared& column : columns) {
    const auto input = signature->inputs().find(column.name);
    if (input == signature->inputs().end() || !names.insert(column.name).second) return false;
    const auto& shape = input->second.tensor_shape();
    if (static_cast<int>(input->second.dtype()) != column.dtype || shape.unknown_rank() ||
        shape.dim_size() != static_cast<int>(column.dims.size())) {
      return false;
    }
    for (int i = 1; i < shape.dim_size(); ++i) {
      if (shape.dim(i).size() != column.dims[i]) return false;
    }
    const int64_t rows = shape.dim(0).size();
    if (rows != -1 && rows != 1) return false;
    once->push_back(rows == 1);
  }
  return true;
}

bool HasRows(const Column& column, int64_t rows) { return column.dims[0] == rows; }

void KeepStrings(const std::vector<int64_t>& rows, Column* column) {
  std::vector<Bytes> strings;
  int64_t elements;
  // Cannot fail: both calls succeeded when the keys were made.
  if (!ElementCount(*column, &elements).ok() || !AddStrings(*column, elements, &strings).ok())
    return;
  const int64_t per_row = elements / column->dims[0];
  column->values.Clear();
  for (const int64_t row : rows) {
    for (int64_t i = 0; i < per_row; ++i) column->values.AddString(strings[row * per_row + i]);
  }
}

void KeepNumbers(const std::vector<int64_t>& rows, Column* column, DecodedRequest* columns) {
  const std::string_view all = column->values.tensor_content.view();
  const size_t row_bytes = all.size() / column->dims[0];
  std::string kept;
  kept.reserve(rows.size() * row_bytes);
  for (const int64_t row : rows) kept.append(all, row * row_bytes, row_bytes);
  column->values.tensor_content = Bytes(columns->Keep(std::move(kept)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const ExampleTranscoder>> ExampleTranscoder::Create(
    const RecordedSignatures& converted, const SignatureDefs& signatures) {
  if (!converted.not_transcoded.empty()) return Unfit(converted.not_transcoded);
  std::unique_ptr<ExampleTranscoder> made(new ExampleTranscoder);
  made->source_ = converted.source;
  made->source_input_ = converted.source_input;
  made->columnar_ = converted.columnar;
  if (!TakesExamples(Find(signatures, made->source_), made->source_input_)) {
    if (made->source_ == kDefault) made->source_ = kFormerDefault;
    if (!TakesExamples(Find(signatures, made->source_), made->source_input_)) {
      return Unfit("the model has no signature \"", converted.source, "\" with a vector of strings",
                   " \"", converted.source_input, "\" as its only input");
    }
  }
  if (Status status = ExampleFeatures::Create(converted.features, &made->features_); !status.ok()) {
    return Unfit(status.message);
  }
  const std::vector<Declared> columns = ColumnsOf(*made->features_);
  const SignatureDef* const columnar = Find(signatures, made->columnar_);
  if (!TakesColumns(columnar, columns, &made->once_)) {
    return Unfit("signature \"", made->columnar_, "\" does not take the recorded columns");
  }
  const SignatureDef& source = *Find(signatures, made->source_);
  if (!SameOutputs(source, *columnar)) {
    return Unfit("signature \"", made->columnar_, "\" has other outputs than \"", made->source_,
                 "\"");
  }
  const SignatureDef* const late = Find(signatures, converted.late);
  if (TakesColumns(late, columns, &made->once_) && SameOutputs(source, *late)) {
    made->late_ = converted.late;
  }
  return made;
}

bool ExampleTranscoder::Transcode(const DecodedRequest& request, Scratch* scratch) const {
  if (!TakeExamples(request, &scratch->examples)) return false;
  if (!scratch->decoder.Decode(*features_, scratch->examples)) return false;
  const Span<Column> columns = scratch->decoder.columns();
  scratch->columns.Clear();
  for (const Column& column : columns) *scratch->columns.AddColumn(column.name) = column;
  scratch->columns.output_filter = request.output_filter;
  scratch->user_once = FitsLate(columns);
  return true;
}

bool ExampleTranscoder::TakeExamples(const DecodedRequest& request,
                                     std::vector<Bytes>* examples) const {
  examples->clear();
  if (request.columns().size() != 1) return false;
  const Column& column = request.columns()[0];
  if (column.name != source_input_ || column.dtype != DT_STRING || column.dims.size() != 1) {
    return false;
  }
  int64_t count = 0;
  if (!ElementCount(column, &count).ok()) return false;
  const bool is_complete = column.values.count == count || !column.values.tensor_content.empty();
  return is_complete && AddStrings(column, count, examples).ok();
}

bool ExampleTranscoder::FitsLate(Span<Column> columns) const {
  if (late_.empty()) return false;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (once_[i] && columns[i].dims[0] != 1) return false;
  }
  return true;
}

bool DistinctUsers::KeepOnce(const std::vector<bool>& of_user, int64_t rows,
                             DecodedRequest* columns) {
  if (!TellApart(of_user, rows, *columns)) return false;
  const auto users = static_cast<int64_t>(first_rows_.size());
  for (size_t i = 0; i < of_user.size(); ++i) {
    Column* const column = columns->mutable_column(i);
    if (!of_user[i] || !HasRows(*column, rows)) continue;
    if (column->dtype == DT_STRING) {
      KeepStrings(first_rows_, column);
    } else {
      KeepNumbers(first_rows_, column, columns);
    }
    column->dims[0] = users;
  }
  Column* const added = columns->AddColumn(kRowToUser);
  added->dtype = DT_INT64;
  added->dims = {rows};
  added->values.tensor_content = Bytes(row_to_user_.data(), rows * sizeof(int64_t));
  return true;
}

bool DistinctUsers::TellApart(const std::vector<bool>& of_user, int64_t rows,
                              const DecodedRequest& columns) {
  if (columns.Find(kRowToUser) != nullptr) return false;
  row_keys_.Begin(rows, hash_);
  for (size_t i = 0; i < of_user.size(); ++i) {
    const Column& column = columns.columns()[i];
    if (!of_user[i] || !HasRows(column, rows)) continue;
    int64_t elements;
    if (!ElementCount(column, &elements).ok() || !CheckValues(column, elements).ok() ||
        !row_keys_.AddRows(column, elements).ok()) {
      return false;
    }
  }
  row_keys_.Finish(&keys_);
  return states::FindDistinctRows(keys_, rows / kFewestRowsPerUser, &first_rows_, &row_to_user_);
}

}  // namespace colcast::engine
