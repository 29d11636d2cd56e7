#include "server/engine/rewrites/recorded_requests.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "server/base/warmup_files.h"
#include "server/wire/predict_request.h"
#include "server/wire/reader.h"
#include "tensorflow/core/lib/io/record_reader.h"
#include "tensorflow/core/platform/env.h"

namespace colcast::engine {
namespace {

constexpr size_t kMostMessages = 50;
constexpr size_t kMostFeeds = 4;

// Fields of tensorflow.serving.PredictionLog and PredictLog.
constexpr uint32_t kPredictLog = MakeTag(6, kLengthType);
constexpr uint32_t kRequest = MakeTag(1, kLengthType);

// The last field `wanted` of a message that is a message itself. False if there is none.
bool FindField(std::string_view message, uint32_t wanted, std::string* found) {
  Reader reader{Bytes(message)};
  bool any = false;
  uint32_t tag = 0;
  while (!reader.done() && reader.ReadTag(&tag)) {
    Bytes value;
    const bool is_wanted = tag == wanted;
    if (!(is_wanted ? reader.ReadBytes(&value) : reader.SkipValue(tag, kMaxDepth))) return any;
    if (!is_wanted) continue;
    *found = value.ToString();
    any = true;
  }
  return any;
}

void ReadFile(const std::string& file, std::vector<std::string>* messages) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return;
  std::unique_ptr<tensorflow::RandomAccessFile> opened;
  if (!tensorflow::Env::Default()->NewRandomAccessFile(file, &opened).ok()) return;
  tensorflow::io::SequentialRecordReader records(opened.get());
  tensorflow::tstring record;
  while (messages->size() < kMostMessages && records.ReadRecord(&record).ok()) {
    std::string log, request;
    if (FindField(record, kPredictLog, &log) && FindField(log, kRequest, &request)) {
      messages->push_back(std::move(request));
    }
  }
}

// Leaves only the columns that a signature has.
void DropOthers(const Signature& signature, DecodedRequest* request) {
  for (size_t i = request->column_count(); i-- > 0;) {
    if (signature.inputs().Find(request->column(i).name) < 0) request->RemoveColumn(i);
  }
}

bool MakeFeeds(const Signature& signature, const DecodedRequest& request, TrialFeeds* feeds) {
  PlannedRequest planned;
  if (request.column_count() == 0 || !signature.Receive(request, &planned).ok() ||
      !signature.Plan(&planned).ok() || !signature.BuildFeeds(planned, &feeds->tensors).ok()) {
    return false;
  }
  feeds->rows = planned.rows();
  return feeds->rows > 0;
}

}  // namespace

RecordedRequests::RecordedRequests(const std::string& directory) {
  for (const char* const file : kWarmupFiles) ReadFile(directory + file, &messages_);
}

std::vector<TrialFeeds> RecordedRequests::FeedsOf(const std::string& name,
                                                  const Signature& signature) const {
  std::vector<TrialFeeds> own, others;
  for (const std::string& message : messages_) {
    DecodedRequest request;
    if (!DecodePredictRequest(Bytes(message), &request).ok()) continue;
    request.mutable_output_filter()->clear();
    DropOthers(signature, &request);
    std::vector<TrialFeeds>& list = request.model_spec().signature_name == name ? own : others;
    TrialFeeds feeds;
    if (list.size() < kMostFeeds && MakeFeeds(signature, request, &feeds)) {
      list.push_back(std::move(feeds));
    }
  }
  return own.empty() ? others : own;
}

}  // namespace colcast::engine
