// Requests with tf.Examples, answered by a model's columnar signatures.
#ifndef COLCAST_SERVER_ENGINE_EXAMPLES_TRANSCODING_H_
#define COLCAST_SERVER_ENGINE_EXAMPLES_TRANSCODING_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/engine/engine.h"
#include "server/engine/examples/example_transcoder.h"
#include "server/engine/program/programs.h"
#include "server/engine/rewrites/impure_signatures.h"

namespace colcast::engine {

// A signature of tf.Examples, and what answers for it.
struct TranscodedSignature {
  std::unique_ptr<const ExampleTranscoder> transcoder;
  const Programs* columnar = nullptr;
  const Programs* late = nullptr;  // null: it is not to answer
  // Whether the late one computes each of several users once.
  bool users_once = false;
};

class Transcoding {
 public:
  // Nothing is transcoded before Load().
  Transcoding() = default;

  // Finds the signatures of the model in `directory` that can be transcoded; an error there is a
  // note, not a failure. `find(name)` gives what answers for a signature, null if it cannot be run.
  void Load(const std::string& directory, const SignatureDefs& signatures,
            absl::FunctionRef<const Programs*(const std::string&)> find, const Impurities& impure,
            ExampleTranscoding mode);

  // What an operator should know: a sentence for each signature of strings.
  const std::vector<std::string>& notes() const { return notes_; }

  // Null unless requests to a signature may be transcoded.
  const TranscodedSignature* Find(std::string_view signature) const;

  // Answers a request to a signature of tf.Examples as that signature would, apart from late
  // signatures' tolerance. False, and nothing in `result`, if the signature itself has to: because
  // the Examples are left to TensorFlow's parser, or because the columnar signature failed, so that
  // its own error is the answer.
  static bool Answer(const TranscodedSignature& signature, const DecodedRequest& request,
                     RunResult* result);

  // The same for several signatures that share an input: see Model::PredictTogether(). Only where
  // rounding may differ: TensorFlow fuses other operations in a run of several signatures than in a
  // run of one, so the bits of one by one are not those of together.
  bool AnswerTogether(const DecodedRequest& request, RunResult* result) const;

 private:
  bool late_ = false;
  std::map<std::string, TranscodedSignature, std::less<>> by_source_;
  std::vector<std::string> notes_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_EXAMPLES_TRANSCODING_H_
