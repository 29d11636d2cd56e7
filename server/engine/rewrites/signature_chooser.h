// Chooses the form in which a signature is served: as it was saved, or rewritten.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_SIGNATURE_CHOOSER_H_
#define COLCAST_SERVER_ENGINE_REWRITES_SIGNATURE_CHOOSER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/rewrites/kept_choices.h"
#include "server/engine/rewrites/recorded_requests.h"
#include "server/engine/rewrites/rewritten_signatures.h"
#include "server/engine/signature.h"

namespace colcast::engine {

// One model's, while it is loaded. It is decided before the model serves: an answer never changes
// because another form takes over, and nothing is measured beside requests.
class SignatureChooser {
 public:
  // Reads what was chosen before. `forms` are of the model in `directory`, loaded into `session`;
  // all must outlive the chooser.
  SignatureChooser(const std::string& directory, const Options& options,
                   const RewrittenSignatures& forms, tensorflow::Session* session);

  // Proves and measures the forms of a signature, if it has any, unless that was done before.
  // Returns what is to be served: `original`, which is prepared, or another one that is; `*form` is
  // set to its description. `*why` says what was found out, and is empty if there was nothing to
  // choose from.
  std::unique_ptr<Signature> Choose(const std::string& name, std::unique_ptr<Signature> original,
                                    const RewrittenSignature** form, std::string* why);

  // Keeps what was chosen for the next time. An error says why it cannot be kept.
  absl::Status Keep() const;

  // Implementation details follow.
 private:
  using Forms = std::vector<std::unique_ptr<Signature>>;

  std::unique_ptr<Signature> Prepare(const RewrittenSignature& form, const Signature& original,
                                     absl::Status* status) const;
  // The number of the form to be served, -1 for the original.
  int Decide(const std::string& name, const Signature& original,
             const std::vector<RewrittenSignature>& rewritten, const Forms& forms,
             std::string* why);

  const Options& options_;
  const RewrittenSignatures& rewritten_;
  tensorflow::Session* const session_;
  const std::string key_;
  const std::string file_;
  const KeptChoices kept_;
  KeptChoices chosen_;
  bool has_news_ = false;
  const std::string directory_;
  std::optional<RecordedRequests> recorded_;  // once something is to be tried
  const WorkClock clock_;
  double seconds_left_;
  size_t signatures_left_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_SIGNATURE_CHOOSER_H_
