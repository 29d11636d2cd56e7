// Chooses the form in which a signature is served: as it was saved, or rewritten.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_SIGNATURE_CHOOSER_H_
#define COLCAST_SERVER_ENGINE_REWRITES_SIGNATURE_CHOOSER_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/rewrites/graph_trials.h"
#include "server/engine/rewrites/kept_choices.h"
#include "server/engine/rewrites/recorded_requests.h"
#include "server/engine/rewrites/rewritten_signatures.h"
#include "server/engine/signature.h"

namespace colcast::engine {

// One model's, while it is loaded. It is decided before the model serves: an answer never changes
// because another form takes over, and nothing is measured beside requests.
class SignatureChooser {
 public:
  // Reads what was chosen before for the model in `directory` with these tags. `options` must
  // outlive the chooser.
  SignatureChooser(const std::string& directory, const std::vector<std::string>& tags,
                   const Options& options);

  // The forms that Choose() will need: what was chosen before; otherwise all.
  WantedForms Wants(const std::string& signature) const;

  // To be called before what follows. `forms` are of the model, loaded into `session`, which must
  // outlive the chooser.
  void Use(RewrittenSignatures forms, tensorflow::Session* session);

  // By stage, the late signature whose scores its states become, which is to be chosen before it. A
  // stage loses nothing that this one does not: a proof of close states says nothing of scores.
  void SetStages(std::map<std::string, std::string> late_of) { late_of_ = std::move(late_of); }

  // What is served.
  struct Chosen {
    std::unique_ptr<Signature> signature;      // prepared; null: the original
    const RewrittenSignature* form = nullptr;  // its description, the chooser's
    std::string why;  // what was found out; empty if there was nothing to choose from
  };

  // What was chosen before, if it was: then there is a `why`. `original` need not be prepared; a
  // form has run once, so that no request pays for a first run.
  Chosen TakeKept(const std::string& name, const Signature& original);

  // Proves and measures the forms of a signature, if it has any. `original` is prepared. What reads
  // states is tried on those of stages that were tried before it.
  Chosen Choose(const std::string& name, const Signature& original);

  // Keeps what was chosen for the next time. An error says why it cannot be kept.
  absl::Status Keep();

  // Implementation details follow.
 private:
  using Forms = std::vector<std::unique_ptr<Signature>>;

  // Null if nothing is kept of the signature, or that is not used.
  const KeptChoice* Kept(const std::string& name) const;
  std::unique_ptr<Signature> Prepare(const RewrittenSignature& form, const Signature& original,
                                     absl::Status* status) const;
  // "" if the signature is no stage.
  std::string LateOf(const std::string& name) const;
  // Whether a form of a stage loses what its late signature is not served with.
  bool LosesMore(const std::string& name, const RewrittenSignature& form) const;
  // Takes away such forms, and says so.
  void DropLossier(const std::string& name, std::vector<RewrittenSignature>* forms,
                   std::string* why) const;
  // The same as Decide() where there is no form.
  int KeepOriginal(const std::string& name);
  // The number of the form to be served, -1 for the original.
  int Decide(const std::string& name, const Signature& original, const SignatureForms& rewritten,
             const Forms& forms, std::string* why);
  // Keeps the states that a stage computed of most rows.
  static void NoteStates(const Signature& original, const Trials& trials, KnownRows* states);
  // Stages are chosen anew, one on what another computes, unless all of them and their late
  // signature were chosen.
  void ForgetPartlyChosen();

  const Options& options_;
  RewrittenSignatures rewritten_;
  tensorflow::Session* session_ = nullptr;
  const std::string key_;
  const std::string file_;
  const KeptChoices kept_;
  KeptChoices chosen_;
  std::map<std::string, std::string> late_of_;
  std::map<std::string, std::set<std::string>> loses_;  // what is served, by signature
  bool has_news_ = false;
  const std::string directory_;
  std::optional<RecordedRequests> recorded_;  // once something is to be tried
  std::map<std::string, KnownRows> states_;   // by late signature
  const WorkClock clock_;
  double seconds_left_;
  size_t signatures_left_ = 0;  // to be decided on
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_SIGNATURE_CHOOSER_H_
