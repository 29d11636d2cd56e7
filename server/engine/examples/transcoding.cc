#include "server/engine/examples/transcoding.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/record/export_record.h"

namespace colcast::engine {
namespace {

constexpr std::string_view kDefaultSignature = "serving_default";

// One for each thread, kept from request to request unless only an unusually large one needs it.
class BorrowedScratch {
 public:
  ~BorrowedScratch() {
    constexpr size_t kMostKeptBytes = 8 << 20;
    if (Kept().decoder.bytes() > kMostKeptBytes) Slot().reset();
  }
  ExampleTranscoder::Scratch* get() { return &Kept(); }

 private:
  static std::unique_ptr<ExampleTranscoder::Scratch>& Slot() {
    thread_local std::unique_ptr<ExampleTranscoder::Scratch> slot;
    return slot;
  }
  static ExampleTranscoder::Scratch& Kept() {
    if (Slot() == nullptr) Slot() = std::make_unique<ExampleTranscoder::Scratch>();
    return *Slot();
  }
};

// Whether its method or the name of its only input says that it takes tf.Examples, and not a column
// of strings. The client tells them apart in the same way.
bool DeclaresExamples(const tensorflow::SignatureDef& signature) {
  if (signature.inputs().size() != 1) return false;
  const auto& [alias, info] = *signature.inputs().begin();
  return info.dtype() == tensorflow::DT_STRING && info.tensor_shape().dim_size() < 2 &&
         (signature.method_name() == "tensorflow/serving/classify" ||
          signature.method_name() == "tensorflow/serving/regress" ||
          absl::StrContainsIgnoreCase(alias, "example"));
}

}  // namespace

void Transcoding::Load(const std::string& directory, const SignatureDefs& signatures,
                       absl::FunctionRef<const Programs*(const std::string&)> find,
                       const Impurities& impure, ExampleTranscoding mode) {
  if (mode == ExampleTranscoding::kOff) return;
  late_ = mode == ExampleTranscoding::kLate;
  std::map<std::string, std::string> why_not;
  const auto converted = ReadExportRecordOf(directory);
  if (!converted.ok()) notes_.emplace_back(converted.status().message());
  for (const ConvertedSignature& signature :
       converted.ok() ? *converted : std::vector<ConvertedSignature>()) {
    auto transcoder = ExampleTranscoder::Create(signature, signatures);
    const auto found = impure.find(signature.source);
    if (found != impure.end() && found->second.writes) {
      why_not[signature.source] = absl::StrCat(found->second.why, ", which must not run twice");
    } else if (!transcoder.ok()) {
      why_not[signature.source] = std::string(transcoder.status().message());
    } else if (find((*transcoder)->columnar()) != nullptr) {
      const std::string& late_name = (*transcoder)->late();
      const Programs* const late = late_name.empty() ? nullptr : find(late_name);
      if (late != nullptr && late->computes_users_once()) users_once_.insert(late_name);
      by_source_.try_emplace((*transcoder)->source(), *std::move(transcoder));
    }
  }
  for (const auto& [name, signature] : signatures) {
    const ExampleTranscoder* const found = Find(name);
    const auto reason = why_not.find(name);
    if (found != nullptr) {
      const bool late = late_ && !found->late().empty() && find(found->late()) != nullptr;
      notes_.push_back(absl::StrCat("signature \"", name, "\": tf.Examples are read as columns",
                                    " and run by \"", late ? found->late() : found->columnar(),
                                    "\""));
    } else if (reason != why_not.end() || DeclaresExamples(signature)) {
      notes_.push_back(absl::StrCat(
          "signature \"", name, "\": tf.Examples are parsed by TensorFlow: ",
          reason == why_not.end() ? "no export converted it (assets.extra/colcast.json)"
                                  : reason->second));
    }
  }
}

const ExampleTranscoder* Transcoding::Find(std::string_view signature) const {
  const auto found = by_source_.find(signature.empty() ? kDefaultSignature : signature);
  return found == by_source_.end() ? nullptr : found->second.get();
}

bool Transcoding::Answer(const DecodedRequest& request, Run run, RunResult* result) const {
  if (by_source_.empty()) return false;
  const ExampleTranscoder* const transcoder = Find(request.model_spec().signature_name);
  if (transcoder == nullptr) return false;
  BorrowedScratch borrowed;
  return transcoder->Transcode(request, borrowed.get()) &&
         RunTranscoded(*transcoder, borrowed.get(), run, result);
}

bool Transcoding::FitsLate(const ExampleTranscoder& transcoder,
                           ExampleTranscoder::Scratch* scratch) const {
  if (!late_ || transcoder.late().empty()) return false;
  return scratch->user_once ||
         (users_once_.count(transcoder.late()) != 0 && transcoder.KeepUsersOnce(scratch));
}

bool Transcoding::RunTranscoded(const ExampleTranscoder& transcoder,
                                ExampleTranscoder::Scratch* scratch, Run run,
                                RunResult* result) const {
  const bool late = FitsLate(transcoder, scratch);
  RunResult answer;
  if (!run(late ? transcoder.late() : transcoder.columnar(), scratch->columns, &answer).ok()) {
    return false;
  }
  answer.expansion = ExpansionStats();
  answer.expansion.rows = static_cast<int64_t>(scratch->examples.size());
  answer.expansion.transcoded = true;
  answer.expansion.repeated_bytes = scratch->decoder.repeated_bytes();
  *result = std::move(answer);
  return true;
}

bool Transcoding::AnswerTogether(const DecodedRequest& request, Run run, RunResult* result) const {
  if (!late_) return false;
  // The outputs that are wanted, by signature, without its name in front of them.
  std::map<const ExampleTranscoder*, std::vector<std::string_view>> wanted;
  for (std::string_view output : request.output_filter()) {
    const size_t slash = output.find('/');
    if (slash == std::string_view::npos) return false;
    const ExampleTranscoder* const transcoder = Find(output.substr(0, slash));
    if (transcoder == nullptr) return false;
    wanted[transcoder].push_back(output.substr(slash + 1));
  }
  BorrowedScratch borrowed;
  RunResult all;
  for (const auto& [transcoder, outputs] : wanted) {
    RunResult part;
    if (!transcoder->Transcode(request, borrowed.get())) return false;
    *borrowed.get()->columns.mutable_output_filter() = outputs;
    if (!RunTranscoded(*transcoder, borrowed.get(), run, &part)) return false;
    for (size_t i = 0; i < part.tensors.size(); ++i) {
      all.names.push_back(absl::StrCat(transcoder->source(), "/", part.aliases[i]));
      all.aliases.push_back(all.names.back());
      all.tensors.push_back(part.tensors[i]);
    }
    all.expansion = part.expansion;
  }
  if (wanted.empty()) return false;
  *result = std::move(all);
  return true;
}

}  // namespace colcast::engine
