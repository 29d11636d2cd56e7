#include "server/wire/predict_request.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "server/wire/reader.h"
#include "server/wire/tensor_decoder.h"

namespace colcast {
namespace {

// The columns' memory is freed after a request with more columns than this.
constexpr size_t kMaxKeptColumns = 4096;

}  // namespace

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

void DecodedRequest::RememberNames(bool as_before) {
  as_decoded_ = true;
  if (as_before && names_before_.size() == column_count_) return;
  made_of_names_ = nullptr;
  names_before_.resize(column_count_);
  for (size_t i = 0; i < column_count_; ++i) names_before_[i] = columns_[i].name;
}

class PredictRequestDecoder {
 public:
  PredictRequestDecoder(DecodedRequest* request, size_t max_columns)
      : request_(request), max_columns_(max_columns) {}

  Status Decode(const Bytes& message) {
    if (ReadRequest(Reader(message, &malformed_))) {
      request_->RememberNames(as_before_);
      return OkStatus();
    }
    if (too_many_ == nullptr) {
      return malformed_.ToStatus("PredictRequest", message.size(), malformed_input_);
    }
    return ResourceExhausted("the request has more than ", max_columns_, " ", too_many_,
                             " (--max_request_columns)");
  }

 private:
  bool ReadRequest(Reader message) {
    return ReadFields(&message, [&](uint32_t tag) {
      Reader nested;
      switch (tag) {
        case MakeTag(1, kLengthType):
          return message.ReadNested(&nested) && MergeModelSpec(nested);
        case MakeTag(2, kLengthType):
          return message.ReadNested(&nested) && DecodeInput(nested);
        case MakeTag(3, kLengthType):
          return ReadName(&message, &request_->output_filter.emplace_back()) &&
                 Limit(request_->output_filter.size(), "outputs in its filter");
        default:
          return message.SkipValue(tag);
      }
    });
  }

  bool MergeModelSpec(Reader spec) {
    ModelSpec& model_spec = request_->model_spec;
    return ReadFields(&spec, [&](uint32_t tag) {
      Reader nested;
      switch (tag) {
        case MakeTag(1, kLengthType):
          return ReadString(&spec, &model_spec.name);
        case MakeTag(2, kLengthType):
          return spec.ReadNested(&nested) && MergeVersion(nested);
        case MakeTag(3, kLengthType):
          return ReadString(&spec, &model_spec.signature_name);
        case MakeTag(4, kLengthType):
          model_spec.version.reset();
          return ReadString(&spec, &model_spec.version_label.emplace());
        default:
          return spec.SkipValue(tag);
      }
    });
  }

  // Merges a google.protobuf.Int64Value.
  bool MergeVersion(Reader wrapped) {
    ModelSpec& model_spec = request_->model_spec;
    model_spec.version_label.reset();
    if (!model_spec.version) model_spec.version = 0;
    return ReadFields(&wrapped, [&](uint32_t tag) {
      if (tag != MakeTag(1, kVarintType)) return wrapped.SkipValue(tag);
      uint64_t value;
      if (!wrapped.ReadVarint(&value)) return false;
      model_spec.version = static_cast<int64_t>(value);
      return true;
    });
  }

  bool DecodeInput(const Reader& entry) {
    // Decodes into the first unused column, which stays unused if its name turns out to be a
    // duplicate.
    std::vector<Column>& columns = request_->columns_;
    const size_t scratch = request_->column_count_;
    if (scratch == columns.size()) columns.emplace_back();
    Column& column = columns[scratch];
    as_before_ = as_before_ && scratch < request_->names_before_.size();
    usual_name_ = as_before_ ? std::string_view(request_->names_before_[scratch]) : "";
    is_usual_ = false;
    column.Clear();
    const Bytes bytes = entry.Rest();
    if (!bytes.contiguous() || !DecodeEntry(FlatReader(bytes), &column)) {
      column.Clear();
      if (!DecodeEntry(entry, &column)) {
        if (!column.name.empty()) malformed_input_ = "input " + Quoted(column.name) + ": ";
        return false;
      }
    }
    as_before_ = as_before_ && is_usual_;
    if (!as_before_) {
      const size_t index = request_->AllNames().FindOrAdd(column.name);
      if (index != scratch) {
        std::swap(columns[index], column);
        return true;
      }
    }
    return Limit(++request_->column_count_, "inputs");
  }

  template <typename AnyReader>
  bool DecodeEntry(AnyReader entry, Column* column) {
    TensorDecoder tensor(column);
    bool has_tensor = false;
    const bool read = ReadFields(&entry, [&](uint32_t tag) {
      if (tag == MakeTag(1, kLengthType)) return ReadName(&entry, &column->name);
      if (tag != MakeTag(2, kLengthType)) return entry.SkipValue(tag);
      if (std::exchange(has_tensor, true)) {
        if (std::is_same_v<AnyReader, FlatReader>) return false;
        if (!Limit(++merged_tensors_, "tensors that are merged into others")) return false;
      }
      AnyReader nested;
      return entry.ReadNested(&nested) && tensor.Merge(nested);
    });
    if (read) tensor.Finish();
    return read;
  }

  bool Limit(size_t count, const char* what) {
    if (count > max_columns_) too_many_ = what;
    return count <= max_columns_;
  }

  template <typename AnyReader>
  bool ReadName(AnyReader* reader, std::string_view* name) {
    Bytes bytes;
    if (!reader->ReadBytes(&bytes)) return false;
    const std::string_view text =
        bytes.contiguous() ? bytes.view() : request_->Keep(bytes.ToString());
    is_usual_ = text == usual_name_;  // and therefore valid UTF-8
    if (!is_usual_ && !reader->CheckText(bytes)) return false;
    *name = text;
    return true;
  }

  static bool ReadString(Reader* reader, std::string* text) {
    Bytes bytes;
    if (!reader->ReadText(&bytes)) return false;
    text->resize(bytes.size());
    bytes.CopyTo(text->data());
    return true;
  }

  DecodedRequest* const request_;
  const size_t max_columns_;
  size_t merged_tensors_ = 0;
  const char* too_many_ = nullptr;  // what exceeded its limit
  bool as_before_ = true;           // whether the names so far equal those of the previous message
  std::string_view usual_name_;     // the name that the previous message had here
  bool is_usual_ = false;           // whether the name that was just read equals usual_name_
  Malformed malformed_;
  std::string malformed_input_;  // "input NAME: "; empty if the error is outside the inputs
};

Status DecodePredictRequest(const Bytes& message, DecodedRequest* request, size_t max_columns) {
  request->Clear();
  return PredictRequestDecoder(request, max_columns).Decode(message);
}

}  // namespace colcast
