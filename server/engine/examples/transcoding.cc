#include "server/engine/examples/transcoding.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/scratch.h"
#include "server/engine/program/domains.h"
#include "server/engine/program/staged_program.h"

namespace colcast::engine {
namespace {

constexpr std::string_view kDefaultSignature = "serving_default";

// Whether the method, or the name of the only input, says that the signature takes tf.Examples and
// not just a column of strings. The client applies the same test.
bool DeclaresExamples(const tensorflow::SignatureDef& signature) {
  if (signature.inputs().size() != 1) return false;
  const auto& [alias, info] = *signature.inputs().begin();
  return info.dtype() == tensorflow::DT_STRING && info.tensor_shape().dim_size() < 2 &&
         (signature.method_name() == "tensorflow/serving/classify" ||
          signature.method_name() == "tensorflow/serving/regress" ||
          absl::StrContainsIgnoreCase(alias, "example"));
}

// Whether the late signature can answer a transcoded request: either all Examples have the same
// user, or it takes several users and row_to_user was added.
bool FitsLate(const TranscodedSignature& signature, ExampleTranscoder::Scratch* scratch) {
  return signature.late != nullptr &&
         (scratch->user_once ||
          (signature.users_once && signature.transcoder->KeepUsersOnce(scratch)));
}

bool RunTranscoded(const TranscodedSignature& signature, ExampleTranscoder::Scratch* scratch,
                   RunResult* result) {
  const Programs& programs = FitsLate(signature, scratch) ? *signature.late : *signature.columnar;
  const auto plan = RequestPlan::New();
  RunResult answer;
  if (!programs.Plan(scratch->columns, plan.get()).ok()) return false;
  plan->batch.pads_together = true;  // TensorFlow parses all Examples of a request together
  if (!programs.Run(plan->batch, &answer).ok()) return false;
  answer.expansion.rows = static_cast<int64_t>(scratch->examples.size());
  answer.expansion.transcoded = true;
  answer.expansion.repeated_bytes = scratch->decoder.repeated_bytes();
  *result = std::move(answer);
  return true;
}

}  // namespace

void Transcoding::Load(const std::vector<RecordedSignatures>& records,
                       const SignatureDefs& signatures,
                       absl::FunctionRef<const Programs*(const std::string&)> find,
                       const Impurities& impure, ExampleTranscoding mode) {
  if (mode == ExampleTranscoding::kOff) return;
  std::map<std::string, std::string> why_not;
  for (const RecordedSignatures& signature : records) {
    if (signature.source_input.empty()) continue;  // its source takes tensors
    auto transcoder = ExampleTranscoder::Create(signature, signatures);
    const auto found = impure.find(signature.source);
    if (found != impure.end() && found->second.writes) {
      why_not[signature.source] = absl::StrCat(found->second.why, ", which must not run twice");
    } else if (!transcoder.ok()) {
      why_not[signature.source] = std::string(transcoder.status().message());
    } else if (const Programs* const columnar = find((*transcoder)->columnar());
               columnar != nullptr) {
      const std::string& late_name = (*transcoder)->late();
      const Programs* const late =
          mode != ExampleTranscoding::kLate || late_name.empty() ? nullptr : find(late_name);
      const bool users_once = late != nullptr && late->domains().take_index() &&
                              late->stages() != nullptr && late->stages()->computes_users_once();
      const std::string source = (*transcoder)->source();
      by_source_.try_emplace(
          source, TranscodedSignature{*std::move(transcoder), columnar, late, users_once});
    }
  }
  for (const auto& [name, signature] : signatures) {
    const auto reason = why_not.find(name);
    if (const TranscodedSignature* const found = Find(name); found != nullptr) {
      const ExampleTranscoder& transcoder = *found->transcoder;
      notes_.push_back(
          absl::StrCat("signature \"", name, "\": tf.Examples are read as columns and run by \"",
                       found->late != nullptr ? transcoder.late() : transcoder.columnar(), "\""));
    } else if (reason != why_not.end() || DeclaresExamples(signature)) {
      notes_.push_back(absl::StrCat(
          "signature \"", name, "\": tf.Examples are parsed by TensorFlow: ",
          reason == why_not.end() ? "no export converted it (assets.extra/colcast.json)"
                                  : reason->second));
    }
  }
}

const TranscodedSignature* Transcoding::Find(std::string_view signature) const {
  if (by_source_.empty()) return nullptr;
  const auto found = by_source_.find(signature.empty() ? kDefaultSignature : signature);
  return found == by_source_.end() ? nullptr : &found->second;
}

bool Transcoding::Answer(const TranscodedSignature& signature, const DecodedRequest& request,
                         RunResult* result) {
  constexpr size_t kMostKept = 4 * kMostKeptBytes;
  // The thread's next request reuses this memory unless it is unusually large.
  thread_local std::unique_ptr<ExampleTranscoder::Scratch> scratch;
  if (scratch == nullptr) scratch = std::make_unique<ExampleTranscoder::Scratch>();
  const absl::Cleanup free_if_large = [] {
    const size_t examples = scratch->examples.capacity() * sizeof(scratch->examples[0]);
    if (examples + scratch->decoder.KeptBytes() > kMostKept) scratch.reset();
  };
  return signature.transcoder->Transcode(request, scratch.get()) &&
         RunTranscoded(signature, scratch.get(), result);
}

}  // namespace colcast::engine
