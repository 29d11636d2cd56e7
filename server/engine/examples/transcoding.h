// Requests with tf.Examples, answered by a model's columnar signatures.
#ifndef COLCAST_SERVER_ENGINE_EXAMPLES_TRANSCODING_H_
#define COLCAST_SERVER_ENGINE_EXAMPLES_TRANSCODING_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/engine/engine.h"
#include "server/engine/examples/example_transcoder.h"
#include "server/engine/program/programs.h"
#include "server/engine/rewrites/impure_signatures.h"

namespace colcast::engine {

class Transcoding {
 public:
  // Runs a request on the signature of that name, whatever it names itself.
  using Run = absl::FunctionRef<absl::Status(std::string_view signature,
                                             const DecodedRequest& request, RunResult* result)>;

  // Nothing is transcoded before Load().
  Transcoding() = default;

  // Finds the signatures of the model in `directory` that can be transcoded; an error there is a
  // note, not a failure. `find(name)` gives what answers for a signature, null if it cannot be run.
  void Load(const std::string& directory, const SignatureDefs& signatures,
            absl::FunctionRef<const Programs*(const std::string&)> find, const Impurities& impure,
            ExampleTranscoding mode);

  // What an operator should know: a sentence for each signature of strings.
  const std::vector<std::string>& notes() const { return notes_; }

  // Whether requests to a signature may be transcoded.
  bool Reads(std::string_view signature) const { return Find(signature) != nullptr; }

  // Answers a request to a signature of tf.Examples as that signature would, apart from late
  // signatures' tolerance. False, and nothing in `result`, if the signature itself has to: because
  // it is not transcoded, because the Examples are left to TensorFlow's parser, or because the
  // columnar signature failed, so that its own error is the answer.
  bool Answer(const DecodedRequest& request, Run run, RunResult* result) const;

  // The same for several signatures that share an input: see Model::PredictTogether(). Only where
  // rounding may differ: TensorFlow fuses other operations in a run of several signatures than in a
  // run of one, so the bits of one by one are not those of together.
  bool AnswerTogether(const DecodedRequest& request, Run run, RunResult* result) const;

 private:
  const ExampleTranscoder* Find(std::string_view signature) const;

  // Whether a transcoded request is for the late signature. It is where the user is the same in all
  // Examples; where there are several, it is made one that says which row is whose.
  bool FitsLate(const ExampleTranscoder& transcoder, ExampleTranscoder::Scratch* scratch) const;
  bool RunTranscoded(const ExampleTranscoder& transcoder, ExampleTranscoder::Scratch* scratch,
                     Run run, RunResult* result) const;

  bool late_ = false;
  std::map<std::string, std::unique_ptr<const ExampleTranscoder>, std::less<>> by_source_;
  std::set<std::string> users_once_;  // late signatures that compute each of several users once
  std::vector<std::string> notes_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_EXAMPLES_TRANSCODING_H_
