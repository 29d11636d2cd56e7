#include "server/engine/rewrites/signature_chooser.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/rewrites/cpu_flags.h"
#include "server/engine/rewrites/float32_tables.h"
#include "server/engine/rewrites/graph_choice.h"

namespace colcast::engine {
namespace {

constexpr int64_t kMeasuredRows[] = {20, 100, 500};

std::string_view Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// All that a choice depends on.
std::string KeyOf(const std::string& directory, const Options& options) {
  return absl::StrCat(
      "colcast " COLCAST_VERSION ", TensorFlow " COLCAST_TENSORFLOW_VERSION ", ",
      ModelFingerprint(directory), ", threads ", options.intra_op_parallelism, " and ",
      options.inter_op_parallelism, ", session ", absl::BytesToHexString(options.session_config),
      ", oneDNN ", Environment("TF_ENABLE_ONEDNN_OPTS"), " ",
      Environment("TF_SET_ONEDNN_FPMATH_MODE"),
      options.graph_optimization == GraphOptimization::kFast
          ? absl::StrCat(", fast within ", options.graph_tolerance)
          : ", exact",
      ", without ", absl::StrJoin(options.unserved_signatures, ","), ", measured for ",
      options.graph_measuring_ms, " ms, ", CpuFlags::OfThisMachine().Description());
}

std::string FileOf(const std::string& directory, const Options& options, std::string_view key) {
  return ChoicesFile(options.graph_choices_directory.empty()
                         ? absl::StrCat(directory, "/assets.extra")
                         : options.graph_choices_directory,
                     key);
}

GraphRun RunOf(const Signature& signature) {
  return [&signature](const Tensors& feeds, Tensors* outputs) {
    RunResult result;
    absl::Status status = signature.RunFeeds(feeds, signature.all_outputs(), &result);
    *outputs = std::move(result.tensors);
    return status;
  };
}

// One for each number of rows to be measured: a recorded one if there is any.
std::vector<const Trial*> ToMeasure(const std::vector<Trial>& trials) {
  std::vector<const Trial*> chosen;
  for (const int64_t rows : kMeasuredRows) {
    const Trial* best = nullptr;
    for (const Trial& trial : trials) {
      if (trial.feeds.rows != rows || (best != nullptr && best->recorded)) continue;
      if (best == nullptr || trial.recorded) best = &trial;
    }
    if (best != nullptr) chosen.push_back(best);
  }
  if (chosen.empty() && !trials.empty()) chosen.push_back(&trials.back());
  return chosen;
}

using Forms = std::vector<std::unique_ptr<Signature>>;

std::vector<Candidate> Prove(const Trials& trials, const Signature& original,
                             const std::vector<RewrittenSignature>& rewritten, const Forms& forms,
                             double tolerance, const HasTime& has_time) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < forms.size(); ++i) {
    Candidate candidate{
        rewritten[i].says, {false, "it cannot be prepared"}, {}, !rewritten[i].tables.int8.empty()};
    if (trials.answered.empty()) {
      candidate.proof.says = absl::StrCat("no request to try: ", trials.why_none);
    } else if (forms[i] != nullptr && rewritten[i].exact) {
      candidate.proof = ProveSameBits(trials.answered, RunOf(original), RunOf(*forms[i]), has_time);
    } else if (forms[i] != nullptr) {
      candidate.proof = ProveClose(trials.answered, RunOf(*forms[i]), tolerance, has_time);
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

void MeasureProved(const std::vector<Trial>& trials, const Signature& original, const Forms& forms,
                   double seconds, const WorkClock& clock, std::vector<Candidate>* candidates) {
  std::vector<GraphRun> proved;
  for (size_t i = 0; i < forms.size(); ++i) {
    if ((*candidates)[i].proof.holds) proved.push_back(RunOf(*forms[i]));
  }
  if (proved.empty()) return;
  const auto measured = Measure(ToMeasure(trials), RunOf(original), proved, seconds, clock);
  size_t next = 0;
  for (Candidate& candidate : *candidates) {
    if (candidate.proof.holds) candidate.measured = measured[next++];
  }
}

// What is used without being measured.
int LastExact(const std::vector<RewrittenSignature>& rewritten) {
  for (auto i = static_cast<int>(rewritten.size()); i-- > 0;) {
    if (rewritten[i].exact) return i;
  }
  return -1;
}

}  // namespace

SignatureChooser::SignatureChooser(const std::string& directory, const Options& options,
                                   const RewrittenSignatures& forms, tensorflow::Session* session)
    : options_(options),
      rewritten_(forms),
      session_(session),
      key_(KeyOf(directory, options)),
      file_(FileOf(directory, options, key_)),
      kept_(ReadChoices(file_, key_)),
      directory_(directory),
      clock_(WorkClockOf(options.inter_op_parallelism == 0 && options.intra_op_parallelism == 1)),
      seconds_left_(1e-3 * static_cast<double>(options.graph_measuring_ms)),
      signatures_left_(forms.size()) {}

std::unique_ptr<Signature> SignatureChooser::Choose(const std::string& name,
                                                    std::unique_ptr<Signature> original,
                                                    const RewrittenSignature** form,
                                                    std::string* why) {
  const auto found = rewritten_.find(name);
  if (found == rewritten_.end()) return original;
  const std::vector<RewrittenSignature>& rewritten = found->second;
  const auto before = kept_.find(name);
  const bool is_kept = before != kept_.end() && options_.graph_measuring_ms > 0;
  Forms forms;
  std::string problems;
  for (const RewrittenSignature& form : rewritten) {
    absl::Status status;
    const bool wanted = !is_kept || before->second.graph == form.name;
    forms.push_back(wanted ? Prepare(form, *original, &status) : nullptr);
    if (!status.ok()) absl::StrAppend(&problems, form.says, " (", status.message(), "); ");
  }
  int best = -1;
  if (is_kept) {
    *why = absl::StrCat(before->second.why, "; found at an earlier load");
    for (size_t i = 0; i < forms.size(); ++i) {
      if (forms[i] != nullptr) best = static_cast<int>(i);
    }
    chosen_[name] = before->second;
  } else {
    best = Decide(name, *original, rewritten, forms, why);
  }
  *why = absl::StrCat(problems, *why);
  --signatures_left_;
  if (best >= 0) *form = &rewritten[best];
  return best < 0 ? std::move(original) : std::move(forms[best]);
}

std::unique_ptr<Signature> SignatureChooser::Prepare(const RewrittenSignature& form,
                                                     const Signature& original,
                                                     absl::Status* status) const {
  absl::StatusOr<std::unique_ptr<Signature>> made =
      Signature::Create(form.declared, session_, options_, original.record());
  *status = made.ok() ? (*made)->Prepare() : made.status();
  // Before the form is tried, for this is no part of what its runs take.
  if (status->ok()) *status = MakeInt8Tables(form.tables.int8, session_);
  return status->ok() ? *std::move(made) : nullptr;
}

int SignatureChooser::Decide(const std::string& name, const Signature& original,
                             const std::vector<RewrittenSignature>& rewritten, const Forms& forms,
                             std::string* why) {
  if (options_.graph_measuring_ms == 0) {
    const int exact = LastExact(rewritten);
    if (exact < 0 || forms[exact] == nullptr) return -1;
    *why = absl::StrCat(rewritten[exact].says, " (not measured)");
    return exact;
  }
  if (seconds_left_ <= 0) {
    *why = "not tried: the graphs of other signatures took all of the measuring time";
    return -1;
  }
  const double start = clock_();
  const double end =
      start + seconds_left_ / static_cast<double>(std::max<size_t>(1, signatures_left_));
  if (!recorded_) recorded_.emplace(directory_);
  TrialLimits limits;
  limits.graphs = 1 + static_cast<int>(forms.size());
  limits.seconds = (end - start) / 2;
  const Trials trials = RunTrials(original.inputs().inputs(), recorded_->FeedsOf(name, original),
                                  RunOf(original), limits, clock_);
  std::vector<Candidate> candidates =
      Prove(trials, original, rewritten, forms, options_.graph_tolerance,
            [&](double seconds) { return clock_() + seconds <= end; });
  MeasureProved(trials.answered, original, forms, end - clock_(), clock_, &candidates);
  seconds_left_ = std::max(0.0, seconds_left_ - (clock_() - start));
  const Choice choice = ChooseGraph(candidates);
  *why = choice.why;
  chosen_[name] = {choice.candidate < 0 ? "" : rewritten[choice.candidate].name, choice.why};
  has_news_ = true;
  return choice.candidate;
}

absl::Status SignatureChooser::Keep() const {
  return has_news_ ? WriteChoices(file_, key_, chosen_) : absl::OkStatus();
}

}  // namespace colcast::engine
