// libFuzzer target: reads a REST request or refuses it. A request that it reads must survive the
// conversion to JSON and back.
//
// The first byte of the input chooses how the rest is read: as a URL, as the body of a Predict,
// Classify or Regress request, or as gzip data.
#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http1/message.h"
#include "server/rest/example_json.h"
#include "server/rest/json_response.h"
#include "server/rest/model_api.h"
#include "server/rest/predict_json.h"
#include "server/wire/column.h"
#include "server/wire/fuzz_testing.h"
#include "server/wire/inflater_testing.h"
#include "server/wire/predict_request.h"
#include "tensorflow/core/example/example.pb.h"

namespace colcast::http {
namespace {

#define CHECK_THAT(condition, what) fuzz::Expect(condition, std::string(#condition ": ") + (what))

void CheckRefusal(const Status& status) {
  CHECK_THAT(status.code == StatusCode::kInvalidArgument ||
                 status.code == StatusCode::kResourceExhausted ||
                 status.code == StatusCode::kUnimplemented,
             status.message);
  CHECK_THAT(!status.message.empty(), "");
}

void AddInput(const std::string& name, DataType dtype, tensorflow::SignatureDef* signature) {
  (*signature->mutable_inputs())[name].set_dtype(static_cast<tensorflow::DataType>(dtype));
}

std::vector<tensorflow::SignatureDef> MakeSignatures() {
  std::vector<tensorflow::SignatureDef> signatures(4);
  AddInput("x", DT_FLOAT, &signatures[0]);
  AddInput("text", DT_STRING, &signatures[1]);
  const DataType kDtypes[] = {DT_FLOAT, DT_DOUBLE, DT_INT8,   DT_INT16,  DT_INT32,  DT_INT64,
                              DT_UINT8, DT_BOOL,   DT_UINT32, DT_UINT64, DT_STRING, DT_HALF};
  for (const DataType dtype : kDtypes) {
    const std::string name(1, static_cast<char>('a' + signatures[2].inputs_size()));
    AddInput(name, dtype, &signatures[2]);
    (*signatures[2].mutable_defaults())[name];
  }
  AddInput("a", DT_INT64, &signatures[3]);
  AddInput("b_bytes", DT_STRING, &signatures[3]);
  return signatures;
}

std::string_view StringAt(const void* data, int64_t index) {
  return (*static_cast<const std::vector<std::string>*>(data))[index];
}

struct Elements {
  std::deque<std::vector<std::string>> strings;
  std::deque<std::string> numbers;
};

// Returns the request's inputs as if a model had returned them, sorted by name.
std::vector<OutputColumn> AsOutputs(const DecodedRequest& request, Elements* elements) {
  std::vector<OutputColumn> outputs;
  for (const Column& column : request.columns()) {
    const void* data = nullptr;
    if (column.dtype == DT_STRING) {
      data = &elements->strings.emplace_back(fuzz::StringsOf(column));
    } else {
      data = elements->numbers.emplace_back(column.values.tensor_content.ToString()).data();
    }
    outputs.push_back({column.name, column.dtype, column.dims, data, StringAt});
  }
  std::sort(outputs.begin(), outputs.end(),
            [](const OutputColumn& a, const OutputColumn& b) { return a.name < b.name; });
  return outputs;
}

// The engine must accept every column.
void CheckRequest(const DecodedRequest& request) {
  for (const Column& column : request.columns()) {
    int64_t count = 0;
    CHECK_THAT(ElementCount(column, &count).ok(), std::string(column.name));
    const Status values = CheckValues(column, count);
    CHECK_THAT(values.ok(), values.message);
  }
}

Status ReadPredict(const std::string& text, const tensorflow::SignatureDef& signature,
                   PredictJson* parsed) {
  const auto find = [&](const std::string&, const tensorflow::SignatureDef** found) {
    *found = &signature;
    return OkStatus();
  };
  return parsed->Read(text, INT64_MAX, find);
}

// Turns the response's JSON into a request. Only the outermost name differs.
std::string AsRequest(const std::string& json, JsonFormat format) {
  const std::string name = format == JsonFormat::kRows ? "predictions" : "outputs";
  const size_t at = json.find(name);
  return std::string(json).replace(at, name.size(),
                                   format == JsonFormat::kRows ? "instances" : "inputs");
}

void RunPredict(const std::string& text, const tensorflow::SignatureDef& signature) {
  PredictJson parsed(nullptr), again(nullptr);
  Elements elements, elements_again;
  const Status status = ReadPredict(text, signature, &parsed);
  if (!status.ok()) return CheckRefusal(status);
  CheckRequest(parsed.request());
  // Two kinds of request cannot be converted back: requests that leave all inputs to their
  // defaults, and requests with only one of several inputs, because a response omits the name of a
  // single output.
  const size_t columns = parsed.request().columns().size();
  if (columns != static_cast<size_t>(signature.inputs_size()) && columns < 2) return;
  std::string json, json_again;
  const Status written =
      WriteOutputs(AsOutputs(parsed.request(), &elements), parsed.format(), &json);
  if (!written.ok()) return CheckRefusal(written);
  const Status read = ReadPredict(AsRequest(json, parsed.format()), signature, &again);
  CHECK_THAT(read.ok(), read.message + " in " + json);
  CHECK_THAT(
      WriteOutputs(AsOutputs(again.request(), &elements_again), again.format(), &json_again).ok(),
      json);
  CHECK_THAT(json == json_again, json + " became " + json_again);
}

void RunExamples(const std::string& text) {
  ExamplesJson parsed(nullptr);
  const Status status = parsed.Read(text, INT64_MAX);
  if (!status.ok()) return CheckRefusal(status);
  const ExampleInput& input = parsed.input();
  tensorflow::Example example;
  CHECK_THAT(example.ParseFromString(input.context), "the context");
  for (const Bytes& piece : input.examples) {
    CHECK_THAT(example.ParseFromString(piece.ToString()), "an example");
  }
}

void RunPath(std::string_view text) {
  static constexpr std::string_view kMethods[] = {"GET", "POST", "PUT", "OPTIONS"};
  if (text.empty()) return;
  RestCall call;
  const std::string_view method = kMethods[static_cast<uint8_t>(text[0]) % 4];
  const Status status = ParseRestPath(method, text.substr(1), &call);
  if (status.code == StatusCode::kNotFound) return;
  if (!status.ok()) return CheckRefusal(status);
  CHECK_THAT(!call.model.name.empty(), call.model.name);
  CHECK_THAT(call.model.name.size() < text.size(), call.model.name);
  CHECK_THAT(!call.model.version || !call.model.version_label, call.model.name);
}

void RunGzip(const std::string& compressed) {
  constexpr size_t kLimit = 1 << 16;
  std::string text, again;
  const Status status = InflateAll(compressed, kLimit, &text);
  CHECK_THAT(text.size() <= kLimit, "the limit");
  if (!status.ok()) return CheckRefusal(status);
  CHECK_THAT(InflateAll(Gzip(text), kLimit, &again).ok() && again == text, "gzip there and back");
}

}  // namespace
}  // namespace colcast::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace colcast::http;
  static const auto* const signatures = new std::vector<tensorflow::SignatureDef>(MakeSignatures());
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 8) {
    case 0:
      RunPath(text);
      break;
    case 1:
      RunExamples(text);
      break;
    case 2:
      RunGzip(text);
      break;
    default:
      RunPredict(text, (*signatures)[data[0] % 4]);
  }
  return 0;
}
