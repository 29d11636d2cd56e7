// libFuzzer target: server/wire must understand every PredictRequest as protobuf and TensorFlow do,
// however gRPC slices it, and must write its tensors as TensorFlow does.
//
// The first byte chooses how to slice, the second whether the rest is the message itself or decides
// what BuildRequest() writes.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/fuzz/message_builder.h"
#include "server/engine/fuzz/oracle.h"
#include "server/wire/column.h"
#include "server/wire/fuzz_testing.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "server/wire/reader.h"

namespace colcast::fuzz {
namespace {

class StringRecorder final : public StringVisitor {
 public:
  void Set(int64_t index, const Bytes& value) override {
    CHECK_THAT(index == static_cast<int64_t>(strings.size()), "strings out of order");
    strings.push_back(value.ToString());
  }
  std::vector<std::string> strings;
};

std::string_view StringAt(const void* data, int64_t index) {
  return static_cast<const std::string*>(data)[index];
}

// Reads the column with server/wire. Returns false if it is refused.
bool ReadElements(const Column& column, std::string* memory, std::vector<std::string>* strings) {
  int64_t count;
  if (!ElementCount(column, &count).ok() || !CheckValues(column, count).ok()) return false;
  if (column.dtype == DT_STRING) {
    StringRecorder recorder;
    if (!VisitStrings(column, count, &recorder).ok()) return false;
    *strings = std::move(recorder.strings);
    return true;
  }
  memory->assign(count * ElementSize(column.dtype), '?');
  return CopyValues(column, count, memory->data()).ok();
}

void CompareResponse(const Column& column, const OracleColumn& expected, TensorEncoding encoding) {
  const void* data = column.dtype == DT_STRING ? static_cast<const void*>(expected.strings.data())
                                               : expected.memory.data();
  const OutputColumn output = {"y", column.dtype, column.dims, data, StringAt};
  PredictResponse response;
  response.outputs = Span<OutputColumn>(&output, 1);
  response.encoding = encoding;
  std::string written;
  CHECK_THAT(WritePredictResponse(response, MakeString(&written)).ok(), DataTypeName(column.dtype));
  Reader message{Bytes(written)}, entry, spec;
  uint32_t tag;
  Bytes name, tensor;
  const bool readable = message.ReadTag(&tag) && message.ReadNested(&entry) &&
                        entry.ReadTag(&tag) && entry.ReadBytes(&name) && entry.ReadTag(&tag) &&
                        entry.ReadBytes(&tensor) && entry.done() && message.ReadTag(&tag) &&
                        message.ReadNested(&spec) && message.done();
  CHECK_THAT(readable, "response of " + DataTypeName(column.dtype));
  CHECK_THAT(
      tensor.ToString() == (encoding == TensorEncoding::kTypedFields ? expected.typed_proto
                                                                     : expected.content_proto),
      "response of " + DataTypeName(column.dtype));
}

void CompareColumn(const Column& column, const OracleColumn& expected) {
  const std::string name(column.name);
  CHECK_THAT(column.dtype == expected.dtype, name);
  CHECK_THAT(column.unknown_rank == expected.unknown_rank, name);
  std::vector<int64_t> dims;
  for (const int64_t dim : expected.dims) AddDim(dim, &dims);
  CHECK_THAT(column.dims == dims, name);
  if (expected.verdict == Verdict::kTooLarge) return;
  std::string memory;
  std::vector<std::string> strings;
  const bool accepted = ReadElements(column, &memory, &strings);
  CHECK_THAT(accepted == (expected.verdict == Verdict::kAccepted && !expected.refused_on_purpose),
             name + " of " + DataTypeName(column.dtype));
  if (!accepted) return;
  CHECK_THAT(memory == expected.memory, name + " of " + DataTypeName(column.dtype));
  CHECK_THAT(strings == expected.strings, name);
  CompareResponse(column, expected, TensorEncoding::kTypedFields);
  CompareResponse(column, expected, TensorEncoding::kTensorContent);
}

void Compare(const DecodedRequest& request, const OracleRequest& expected) {
  CHECK_THAT(request.model_spec.name == expected.model_name, expected.model_name);
  CHECK_THAT(request.model_spec.signature_name == expected.signature_name, expected.signature_name);
  CHECK_THAT(request.model_spec.version == expected.version, "version");
  CHECK_THAT(request.model_spec.version_label == expected.version_label, "version_label");
  CHECK_THAT(request.columns().size() == expected.columns.size(), "number of inputs");
  for (const Column& column : request.columns()) {
    const auto found = expected.columns.find(std::string(column.name));
    CHECK_THAT(found != expected.columns.end(), std::string(column.name));
    CHECK_THAT(request.Find(column.name) == &column, std::string(column.name));
    CompareColumn(column, found->second);
  }
  CHECK_THAT(request.output_filter.size() == expected.output_filter.size(), "output_filter");
  for (size_t i = 0; i < expected.output_filter.size(); ++i) {
    CHECK_THAT(request.output_filter[i] == expected.output_filter[i], expected.output_filter[i]);
  }
}

void RunOne(const std::string& message, uint8_t slicing) {
  static auto* const request = new DecodedRequest();
  current_messages = {message};
  const Slices slices(message, slicing);
  const Status status = DecodePredictRequest(slices.bytes(), request);
  const std::optional<OracleRequest> expected = ReadWithTensorFlow(message, SERVING_PROTOSET);
  CHECK_THAT(status.ok() == expected.has_value(), status.message);
  CHECK_THAT(status.ok() || status.code == StatusCode::kInvalidArgument, status.message);
  if (status.ok()) Compare(*request, *expected);
}

}  // namespace
}  // namespace colcast::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", 1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint8_t slicing = data[0];
  const bool build = data[1] % 2 == 1;
  std::string message(reinterpret_cast<const char*>(data + 2), size - 2);
  if (build) {
    colcast::fuzz::Decisions decisions(data + 2, size - 2);
    message = colcast::fuzz::BuildRequest(&decisions);
  }
  colcast::fuzz::RunOne(message, slicing);
  return 0;
}
