// Answers tf.Example requests with a model's columnar signatures.
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

// A tf.Example signature and the programs that answer for it.
struct TranscodedSignature {
  std::unique_ptr<const ExampleTranscoder> transcoder;
  const Programs* columnar = nullptr;
  const Programs* late = nullptr;  // null if the late signature must not answer
  // Whether the late signature takes several users and computes each once.
  bool users_once = false;
};

class Transcoding {
 public:
  // Without Load(), no request is transcoded.
  Transcoding() = default;

  // Finds the signatures that can be transcoded; a failure becomes a note, not an error.
  // `find(name)` returns the programs of a signature, or null if it cannot be run.
  void Load(const std::vector<RecordedSignatures>& records, const SignatureDefs& signatures,
            absl::FunctionRef<const Programs*(const std::string&)> find, const Impurities& impure,
            ExampleTranscoding mode);

  // Notes for the operator, one sentence for each signature that takes strings.
  const std::vector<std::string>& notes() const { return notes_; }

  // Returns null unless requests to the signature may be transcoded.
  const TranscodedSignature* Find(std::string_view signature) const;

  // Answers a request to a tf.Example signature with that signature's results, within the tolerance
  // for late signatures. Returns false, with `result` empty, if the signature itself must answer:
  // either only TensorFlow's parser can read the Examples, or the columnar signature failed and the
  // client should get the original signature's error.
  static bool Answer(const TranscodedSignature& signature, const DecodedRequest& request,
                     RunResult* result);

 private:
  std::map<std::string, TranscodedSignature, std::less<>> by_source_;
  std::vector<std::string> notes_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_EXAMPLES_TRANSCODING_H_
