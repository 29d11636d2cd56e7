#include "server/wire/predict_request.h"

#include <utility>

#include "server/base/text.h"
#include "server/wire/reader.h"
#include "server/wire/schema.h"
#include "server/wire/tensor_decoder.h"
#include "server/wire/usual_entry.h"

namespace colcast {
namespace {

// The columns' memory is freed after a request with more columns than this.
constexpr size_t kMaxKeptColumns = 4096;

}  // namespace

// Finds only whether the message is well-formed; a second pass finds where it is malformed.
class PredictRequestDecoder {
 public:
  PredictRequestDecoder(DecodedRequest* request, size_t max_columns)
      : request_(request), max_columns_(max_columns) {}

  // Here and below, at most `depth` levels of messages may still nest.
  bool Decode(Reader message, int depth);
  // What exceeded its limit ("inputs"), if Decode() failed because of that; empty otherwise.
  std::string_view too_many() const { return too_many_; }

  // Call after a successful Decode().
  void RememberNames() { request_->RememberNames(as_before_); }

 private:
  bool MergeModelSpec(Reader spec, int depth);
  bool MergeVersion(Reader wrapped, int depth);
  bool DecodeInput(const Reader& entry, int depth);
  bool DecodeEntry(Reader entry, int depth, Column* column);
  bool AddColumn();
  bool Limit(size_t count, std::string_view what);
  bool CheckIgnored(Reader* message, const MessageSchema& schema, int depth);
  bool ReadName(Reader* reader, std::string_view* name);
  bool ReadString(Reader* reader, std::string* text);

  DecodedRequest* const request_;
  const size_t max_columns_;
  size_t merged_tensors_ = 0;
  std::string_view too_many_;
  bool as_before_ = true;  // whether the names so far equal those of the previous message
  TensorDecoder tensor_decoder_;
};

bool PredictRequestDecoder::Decode(Reader message, int depth) {
  return ReadFields(&message, [&](uint32_t tag) {
    Reader nested;
    switch (tag) {
      case MakeTag(1, kLengthType):
        return message.ReadNested(&nested) && MergeModelSpec(nested, depth - 1);
      case MakeTag(2, kLengthType):
        return message.ReadNested(&nested) && DecodeInput(nested, depth - 1);
      case MakeTag(3, kLengthType):
        return ReadName(&message, &request_->output_filter.emplace_back()) &&
               Limit(request_->output_filter.size(), "outputs in its filter");
      case MakeTag(5, kLengthType):
        return CheckIgnored(&message, kPredictStreamedOptions, depth - 1);
      case MakeTag(7, kLengthType):
        return CheckIgnored(&message, kRequestOptions, depth - 1);
      default:
        return message.SkipValue(tag, depth);
    }
  });
}

bool PredictRequestDecoder::MergeModelSpec(Reader spec, int depth) {
  ModelSpec& model_spec = request_->model_spec;
  return ReadFields(&spec, [&](uint32_t tag) {
    Reader nested;
    switch (tag) {
      case MakeTag(1, kLengthType):
        return ReadString(&spec, &model_spec.name);
      case MakeTag(2, kLengthType):
        return spec.ReadNested(&nested) && MergeVersion(nested, depth - 1);
      case MakeTag(3, kLengthType):
        return ReadString(&spec, &model_spec.signature_name);
      case MakeTag(4, kLengthType):
        model_spec.version.reset();
        return ReadString(&spec, &model_spec.version_label.emplace());
      default:
        return spec.SkipValue(tag, depth);
    }
  });
}

// Merges a google.protobuf.Int64Value.
bool PredictRequestDecoder::MergeVersion(Reader wrapped, int depth) {
  ModelSpec& model_spec = request_->model_spec;
  model_spec.version_label.reset();
  if (!model_spec.version) model_spec.version = 0;
  return ReadFields(&wrapped, [&](uint32_t tag) {
    if (tag != MakeTag(1, kVarintType)) return wrapped.SkipValue(tag, depth);
    uint64_t value;
    if (!wrapped.ReadVarint(&value)) return false;
    model_spec.version = static_cast<int64_t>(value);
    return true;
  });
}

bool PredictRequestDecoder::DecodeInput(const Reader& entry, int depth) {
  // Decodes into the first unused column, which stays unused if its name turns out to be a
  // duplicate.
  std::vector<Column>& columns = request_->columns_;
  const size_t scratch = request_->column_count_;
  if (scratch == columns.size()) columns.emplace_back();
  Column& column = columns[scratch];
  column.Clear();
  as_before_ = as_before_ && scratch < request_->names_before_.size();
  if (as_before_ && ReadUsualEntry(entry.Rest(), request_->names_before_[scratch], &column)) {
    return AddColumn();
  }
  column.Clear();
  if (!DecodeEntry(entry, depth, &column)) return false;
  as_before_ = as_before_ && column.name == request_->names_before_[scratch];
  if (as_before_) return AddColumn();
  const size_t index = request_->AllNames().FindOrAdd(column.name);
  if (index == scratch) return AddColumn();
  std::swap(columns[index], column);
  return true;
}

bool PredictRequestDecoder::DecodeEntry(Reader entry, int depth, Column* column) {
  tensor_decoder_.Begin(column);
  bool has_tensor = false;
  const bool read = ReadFields(&entry, [&](uint32_t tag) {
    if (tag == MakeTag(1, kLengthType)) return ReadName(&entry, &column->name);
    if (tag != MakeTag(2, kLengthType)) return entry.SkipValue(tag, depth);
    if (has_tensor && !Limit(++merged_tensors_, "tensors that are merged into others")) {
      return false;
    }
    has_tensor = true;
    Reader nested;
    return entry.ReadNested(&nested) && tensor_decoder_.Merge(nested, depth - 1);
  });
  if (read) tensor_decoder_.Finish();
  return read;
}

bool PredictRequestDecoder::AddColumn() { return Limit(++request_->column_count_, "inputs"); }

bool PredictRequestDecoder::Limit(size_t count, std::string_view what) {
  if (count > max_columns_) too_many_ = what;
  return count <= max_columns_;
}

void DecodedRequest::RememberNames(bool as_before) {
  as_decoded_ = true;
  if (as_before && names_before_.size() == column_count_) return;
  made_of_names_ = nullptr;
  names_before_.resize(column_count_);
  for (size_t i = 0; i < column_count_; ++i) names_before_[i] = columns_[i].name;
}

bool PredictRequestDecoder::CheckIgnored(Reader* message, const MessageSchema& schema, int depth) {
  Reader nested;
  return message->ReadNested(&nested) && CheckMessage(nested, schema, depth, nullptr);
}

bool PredictRequestDecoder::ReadName(Reader* reader, std::string_view* name) {
  Bytes bytes;
  if (!reader->ReadBytes(&bytes)) return false;
  *name = bytes.contiguous() ? bytes.view() : request_->Keep(bytes.ToString());
  return IsValidUtf8(*name);
}

bool PredictRequestDecoder::ReadString(Reader* reader, std::string* text) {
  Bytes bytes;
  if (!reader->ReadBytes(&bytes)) return false;
  text->resize(bytes.size());
  bytes.CopyTo(text->data());
  return IsValidUtf8(*text);
}

void Column::Clear() {
  name = std::string_view();
  dtype = DT_INVALID;
  unknown_rank = false;
  ClearForReuse(&dims);
  values.Clear();
}

size_t DecodedRequest::MemoryBytes() const {
  size_t bytes = columns_.capacity() * sizeof(Column);
  for (const Column& column : columns_) {
    bytes += column.dims.capacity() * sizeof(int64_t);
    bytes += column.values.messages.capacity() * sizeof(Bytes);
    bytes += column.values.strings.capacity() * sizeof(Bytes);
  }
  return bytes;
}

void DecodedRequest::Clear() {
  ClearForReuse(&model_spec.name);
  model_spec.version.reset();
  model_spec.version_label.reset();
  ClearForReuse(&model_spec.signature_name);
  id = {};
  if (column_count_ > kMaxKeptColumns) {
    columns_ = std::vector<Column>();
    names_ = NameTable();
    names_before_ = std::vector<std::string>();
    made_of_names_ = nullptr;
  }
  as_decoded_ = false;
  column_count_ = 0;
  stored_.clear();
  names_.Clear();
  ClearForReuse(&output_filter);
  kept_.clear();
}

Column* DecodedRequest::AddColumn(std::string_view name) {
  as_decoded_ = false;
  if (column_count_ == columns_.size()) columns_.emplace_back();
  Column* const column = &columns_[column_count_++];
  column->Clear();
  column->name = name;
  return column;
}

void DecodedRequest::RemoveColumn(size_t index) {
  std::swap(columns_[index], columns_[--column_count_]);
  names_.Clear();
  as_decoded_ = false;
}

const Column* DecodedRequest::Find(std::string_view name) const {
  const size_t index = AllNames().Find(name);
  return index == column_count_ ? nullptr : &columns_[index];
}

NameTable& DecodedRequest::AllNames() const {
  while (names_.size() < column_count_) names_.FindOrAdd(columns_[names_.size()].name);
  return names_;
}

Status DecodePredictRequest(const Bytes& message, DecodedRequest* request, size_t max_columns) {
  request->Clear();
  PredictRequestDecoder decoder(request, max_columns);
  if (decoder.Decode(Reader(message), kMaxDepth)) {
    decoder.RememberNames();
    return OkStatus();
  }
  if (!decoder.too_many().empty()) {
    return ResourceExhausted("the request has more than ", max_columns, " ", decoder.too_many(),
                             " (--max_request_columns)");
  }
  Malformed malformed;
  if (CheckMessage(Reader(message), kPredictRequest, kMaxDepth, &malformed)) {
    return Internal("the request's decoder and its checker disagree");
  }
  return MalformedError("PredictRequest", malformed, message.size());
}

}  // namespace colcast
