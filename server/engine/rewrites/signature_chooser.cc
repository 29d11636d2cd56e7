#include "server/engine/rewrites/signature_chooser.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
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
std::string KeyOf(const std::string& directory, const std::vector<std::string>& tags,
                  const Options& options) {
  return absl::StrCat(
      "colcast " COLCAST_VERSION ", rewrites " COLCAST_REWRITES_REVISION
      ", TensorFlow " COLCAST_TENSORFLOW_VERSION ", ",
      ModelFingerprint(directory), ", tags ",
      absl::StrJoin(std::set(tags.begin(), tags.end()), ","), ", threads ",
      options.intra_op_parallelism, " and ", options.inter_op_parallelism, ", session ",
      absl::BytesToHexString(options.session_config), ", oneDNN ",
      Environment("TF_ENABLE_ONEDNN_OPTS"), " ", Environment("TF_SET_ONEDNN_FPMATH_MODE"),
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

// Has weights packed, and whatever else a first run does. Row 0 is in every table.
void RunOnce(const Signature& form) {
  const auto& inputs = form.inputs().inputs();
  Tensors outputs;
  if (!absl::c_all_of(inputs, CanBeMade)) return;
  RunOf(form)(GenerateFeeds(inputs, /*rows=*/1, /*values=*/1).tensors, &outputs).IgnoreError();
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
    if (!rewritten[i].why_not.empty()) {
      candidate.proof.says = rewritten[i].why_not;
    } else if (trials.answered.empty()) {
      candidate.proof.says = absl::StrCat("no request to try: ", trials.why_none);
    } else if (forms[i] != nullptr && rewritten[i].exact) {
      candidate.proof = ProveSameBits(trials.answered, RunOf(original), RunOf(*forms[i]), has_time);
    } else if (forms[i] != nullptr) {
      candidate.proof = ProveClose(trials.answered, RunOf(*forms[i]),
                                   rewritten[i].tolerance_share * tolerance, has_time);
    }
    if (forms[i] != nullptr) ProveRefusals(trials.refused, RunOf(*forms[i]), &candidate.proof);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

// False if there was no time for all.
bool MeasureProved(const std::vector<Trial>& trials, const Signature& original, const Forms& forms,
                   double seconds, const WorkClock& clock, std::vector<Candidate>* candidates) {
  std::vector<GraphRun> proved;
  for (size_t i = 0; i < forms.size(); ++i) {
    if ((*candidates)[i].proof.holds) proved.push_back(RunOf(*forms[i]));
  }
  if (proved.empty()) return true;
  const std::vector<const Trial*> wanted = ToMeasure(trials);
  const auto measured = Measure(wanted, RunOf(original), proved, seconds, clock);
  size_t next = 0;
  for (Candidate& candidate : *candidates) {
    if (candidate.proof.holds) candidate.measured = measured[next++];
  }
  return measured[0].size() == wanted.size();
}

bool LackedTime(const Trials& trials, const std::vector<Candidate>& candidates) {
  return trials.lacked_time || std::any_of(candidates.begin(), candidates.end(),
                                           [](const auto& one) { return one.proof.lacked_time; });
}

int LastExact(const std::vector<RewrittenSignature>& rewritten) {
  for (auto i = static_cast<int>(rewritten.size()); i-- > 0;) {
    if (rewritten[i].exact) return i;
  }
  return -1;
}

// What is used without being measured.
int Unmeasured(const std::vector<RewrittenSignature>& rewritten, const Forms& forms,
               std::string* why) {
  const int exact = LastExact(rewritten);
  if (exact < 0 || forms[exact] == nullptr) return -1;
  *why = absl::StrCat(rewritten[exact].says, " (not measured)");
  return exact;
}

std::string ProblemOf(const RewrittenSignature& form, const absl::Status& status) {
  return absl::StrCat(form.says, " (", status.message(), "); ");
}

}  // namespace

SignatureChooser::SignatureChooser(const std::string& directory,
                                   const std::vector<std::string>& tags, const Options& options)
    : options_(options),
      key_(KeyOf(directory, tags, options)),
      file_(FileOf(directory, options, key_)),
      kept_(ReadChoices(file_, key_)),
      chosen_(kept_),
      directory_(directory),
      clock_(WorkClockOf(options.inter_op_parallelism == 0 && options.intra_op_parallelism == 1)),
      seconds_left_(1e-3 * static_cast<double>(options.graph_measuring_ms)) {}

const KeptChoice* SignatureChooser::Kept(const std::string& name) const {
  const auto found = kept_.find(name);
  return found == kept_.end() || options_.graph_measuring_ms == 0 ? nullptr : &found->second;
}

WantedForms SignatureChooser::Wants(const std::string& signature) const {
  if (absl::c_linear_search(options_.unserved_signatures, signature)) return {false, ""};
  const KeptChoice* const kept = Kept(signature);
  return kept == nullptr ? WantedForms() : WantedForms{!kept->graph.empty(), kept->graph};
}

void SignatureChooser::Use(RewrittenSignatures forms, tensorflow::Session* session) {
  rewritten_ = std::move(forms);
  session_ = session;
  for (const auto& [name, made] : rewritten_) signatures_left_ += Kept(name) == nullptr ? 1 : 0;
}

SignatureChooser::Chosen SignatureChooser::TakeKept(const std::string& name,
                                                    const Signature& original) {
  const KeptChoice* const kept = Kept(name);
  if (kept == nullptr) return {};
  Chosen chosen;
  chosen.why = absl::StrCat(kept->why, "; found at an earlier load");
  const auto found = rewritten_.find(name);
  if (found == rewritten_.end() && !kept->graph.empty()) {
    chosen.why = absl::StrCat("as it was saved: the kept form cannot be made; ", chosen.why);
  }
  if (found != rewritten_.end()) {
    const RewrittenSignature& form = found->second.forms.front();
    if (LosesMore(name, form)) {
      chosen.why =
          absl::StrCat("as it was saved: \"", LateOf(name),
                       "\", of which it is a stage, is not served like this; ", chosen.why);
      return chosen;
    }
    absl::Status status;
    chosen.signature = Prepare(form, original, &status);
    if (!status.ok()) {
      chosen.why = absl::StrCat(ProblemOf(form, status), chosen.why);
      return chosen;
    }
    RunOnce(*chosen.signature);
    chosen.form = &form;
    loses_[name] = form.loses;
  }
  return chosen;
}

SignatureChooser::Chosen SignatureChooser::Choose(const std::string& name,
                                                  const Signature& original) {
  const auto found = rewritten_.find(name);
  if (found == rewritten_.end()) return {};
  Chosen chosen;
  DropLossier(name, &found->second.forms, &chosen.why);
  const std::vector<RewrittenSignature>& rewritten = found->second.forms;
  Forms forms;
  const bool is_measured = options_.graph_measuring_ms > 0;
  for (size_t i = 0; i < rewritten.size(); ++i) {
    absl::Status status;
    const bool is_wanted = (is_measured || static_cast<int>(i) == LastExact(rewritten)) &&
                           rewritten[i].why_not.empty();
    forms.push_back(is_wanted ? Prepare(rewritten[i], original, &status) : nullptr);
    if (!status.ok()) absl::StrAppend(&chosen.why, ProblemOf(rewritten[i], status));
  }
  std::string why;
  const int best = !is_measured        ? Unmeasured(rewritten, forms, &why)
                   : rewritten.empty() ? KeepOriginal(name)
                                       : Decide(name, original, found->second, forms, &why);
  absl::StrAppend(&chosen.why, why);
  if (const auto kept = chosen_.find(name); kept != chosen_.end()) kept->second.why = chosen.why;
  if (best < 0) return chosen;
  chosen.signature = std::move(forms[best]);
  chosen.form = &rewritten[best];
  loses_[name] = chosen.form->loses;
  return chosen;
}

std::string SignatureChooser::LateOf(const std::string& name) const {
  const auto found = late_of_.find(name);
  return found == late_of_.end() ? "" : found->second;
}

bool SignatureChooser::LosesMore(const std::string& name, const RewrittenSignature& form) const {
  if (late_of_.count(name) == 0) return false;
  const auto late = loses_.find(LateOf(name));
  return late == loses_.end() ? !form.loses.empty() : !absl::c_includes(late->second, form.loses);
}

void SignatureChooser::DropLossier(const std::string& name, std::vector<RewrittenSignature>* forms,
                                   std::string* why) const {
  const auto loses_more = [&](const RewrittenSignature& form) { return LosesMore(name, form); };
  const auto dropped = std::stable_partition(forms->begin(), forms->end(), std::not_fn(loses_more));
  for (auto form = dropped; form != forms->end(); ++form) {
    absl::StrAppend(why, form == dropped ? "" : ", ", form->says);
  }
  if (dropped == forms->end()) return;
  absl::StrAppend(why, " (not tried: \"", LateOf(name),
                  "\", of which it is a stage, is not served so)",
                  dropped == forms->begin() ? "" : "; ");
  forms->erase(dropped, forms->end());
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
                             const SignatureForms& rewritten, const Forms& forms,
                             std::string* why) {
  if (seconds_left_ <= 0) {
    *why = "not tried: the graphs of other signatures took all of the measuring time";
    return -1;
  }
  const double start = clock_();
  const double seconds = seconds_left_ / static_cast<double>(signatures_left_--);
  const double end = start + seconds;
  if (!recorded_) recorded_.emplace(directory_);
  TrialLimits limits;
  limits.graphs = 1 + static_cast<int>(forms.size());
  limits.seconds = seconds / 2;
  limits.ids = rewritten.ids;
  limits.known = states_[LateOf(name)];
  const Trials trials = RunTrials(original.inputs().inputs(), recorded_->FeedsOf(name, original),
                                  RunOf(original), limits, clock_);
  NoteStates(original, trials, &states_[LateOf(name)]);
  std::vector<Candidate> candidates =
      Prove(trials, original, rewritten.forms, forms, options_.graph_tolerance,
            [&](double more) { return clock_() + more <= end; });
  const bool all_measured =
      MeasureProved(trials.answered, original, forms, end - clock_(), clock_, &candidates);
  seconds_left_ = std::max(0.0, seconds_left_ - (clock_() - start));
  const Choice choice = ChooseGraph(candidates);
  *why = choice.why;
  const double all = 1e-3 * static_cast<double>(options_.graph_measuring_ms);
  const bool is_complete = all_measured && !LackedTime(trials, candidates);
  if (is_complete || std::max(seconds, clock_() - start) >= all) {
    chosen_[name] = {choice.candidate < 0 ? "" : rewritten.forms[choice.candidate].name, ""};
    has_news_ = true;
  } else {
    absl::StrAppend(why, "; not kept for the next load, which may have time for all trials");
  }
  return choice.candidate;
}

int SignatureChooser::KeepOriginal(const std::string& name) {
  --signatures_left_;
  chosen_[name] = {"", ""};
  has_news_ = true;
  return -1;
}

void SignatureChooser::NoteStates(const Signature& original, const Trials& trials,
                                  KnownRows* states) {
  // Not the recorded request, which may be of one row.
  const auto most = std::find_if(trials.answered.rbegin(), trials.answered.rend(),
                                 [](const Trial& trial) { return !trial.recorded; });
  if (most == trials.answered.rend()) return;
  for (size_t i = 0; i < most->outputs.size(); ++i) {
    const std::string& alias = original.output_aliases()[i];
    if (absl::StrContains(alias, "_state/")) (*states)[alias] = most->outputs[i];
  }
}

void SignatureChooser::ForgetPartlyChosen() {
  std::set<std::string> partly;  // late signatures
  for (const auto& [stage, late] : late_of_) {
    for (const std::string& name : {stage, late}) {
      if (rewritten_.count(name) > 0 && chosen_.count(name) == 0) partly.insert(late);
    }
  }
  for (const auto& [stage, late] : late_of_) {
    if (partly.count(late) > 0 && chosen_.erase(stage) > 0) has_news_ = true;
  }
}

absl::Status SignatureChooser::Keep() {
  ForgetPartlyChosen();
  return has_news_ ? WriteChoices(file_, key_, chosen_) : absl::OkStatus();
}

}  // namespace colcast::engine
