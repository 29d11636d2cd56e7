#include "server/request_log/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <system_error>
#include <utility>

#include "server/inference/tfrecord.h"
#include "server/wire/reader.h"
#include "server/wire/varint.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace colcast::request_log {

namespace {

using tensorflow::serving::PredictionLog;
using tensorflow::serving::PredictLog;

// The field for the log of `api`. Each such log holds request and response in PredictLog's fields.
uint32_t LogField(std::string_view api) {
  if (api == "Classify") return PredictionLog::kClassifyLogFieldNumber;
  if (api == "Regress") return PredictionLog::kRegressLogFieldNumber;
  if (api == "MultiInference") return PredictionLog::kMultiInferenceLogFieldNumber;
  return PredictionLog::kPredictLogFieldNumber;
}

std::string Metadata(const LoggedCall& call, double sampling_rate, int64_t timestamp_seconds) {
  PredictionLog log;
  auto* metadata = log.mutable_log_metadata();
  auto* spec = metadata->mutable_model_spec();
  spec->set_name(std::string(call.model_name));
  spec->mutable_version()->set_value(call.version);
  spec->set_signature_name(std::string(call.signature_name));
  metadata->mutable_sampling_config()->set_sampling_rate(sampling_rate);
  metadata->set_timestamp_secs(timestamp_seconds);
  return log.SerializeAsString();
}

size_t FieldSize(size_t body) { return 1 + VarintSize(body) + body; }

// Appends the tag and the length of a bytes field with a number below 16.
void AppendHead(uint32_t field, size_t body, std::string* text) {
  AppendVarint(MakeTag(field, kLengthType), text);
  AppendVarint(body, text);
}

void AppendField(uint32_t field, const Bytes& body, std::string* text) {
  AppendHead(field, body.size(), text);
  body.ForEachPiece([text](const uint8_t* data, size_t size) {
    text->append(reinterpret_cast<const char*>(data), size);
  });
}

}  // namespace

std::string MakePredictionLog(const LoggedCall& call, double sampling_rate,
                              int64_t timestamp_seconds) {
  std::string log = Metadata(call, sampling_rate, timestamp_seconds);
  const size_t body = FieldSize(call.request.size()) + FieldSize(call.response.size());
  log.reserve(log.size() + FieldSize(body));
  AppendHead(LogField(call.api), body, &log);
  AppendField(PredictLog::kRequestFieldNumber, call.request, &log);
  AppendField(PredictLog::kResponseFieldNumber, call.response, &log);
  return log;
}

namespace {

constexpr int kMaxNumber = 10'000;  // of files begun within one second

std::string TimeText() {
  const std::time_t now = std::time(nullptr);
  std::tm utc;
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &utc);
  return text;
}

}  // namespace

LogFile::LogFile(std::string prefix, int64_t max_file_bytes)
    : prefix_(std::move(prefix)), max_file_bytes_(max_file_bytes) {}

LogFile::~LogFile() { Close(); }

Status LogFile::Write(std::string_view record) {
  const std::string framed = inference::TfRecord(record);
  const auto bytes = static_cast<int64_t>(framed.size());
  if (file_ >= 0 && size_ + bytes > max_file_bytes_) Close();
  if (file_ < 0) {
    if (Status status = Open(); !status.ok()) return status;
  }
  Status status = Append(framed);
  if (status.ok()) {
    size_ += bytes;
  } else {
    // Removes an incomplete record, which every reader would take for the end of the file.
    [[maybe_unused]] int ignored = ftruncate(file_, size_);
    if (size_ == 0) ignored = unlink(path_.c_str());
    Close();
  }
  return status;
}

Status LogFile::Open() {
  const std::string begin = prefix_ + '-' + TimeText() + '-';
  for (int number = 0; number < kMaxNumber; ++number) {
    char text[16];
    std::snprintf(text, sizeof(text), "%04d.tfrecord", number);
    path_ = begin + text;
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0640);
    if (file_ >= 0) break;
    if (errno != EEXIST) return Failed("cannot be opened", errno);
  }
  if (file_ < 0) return Failed("cannot be opened", EEXIST);
  size_ = 0;
  return OkStatus();
}

Status LogFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return Failed("cannot be written", errno);
    }
  }
  return OkStatus();
}

void LogFile::Close() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

Status LogFile::Failed(const char* what, int error) const {
  return Unavailable("request log: ", path_, ' ', what, ": ",
                     std::generic_category().message(error));
}

}  // namespace colcast::request_log
