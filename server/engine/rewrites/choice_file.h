// The choice file that `colcast tune --graphs` writes: which inexact rewrites (those that change
// the last bits of scores) a model may use on which machine.
//
//   {"key": "colcast 0.2.0, TensorFlow 2.20.0, AMD EPYC 9B45, graph 0123456789abcdef",
//    "rewrites": ["bfloat16 products"], "signatures": ["columnar", "columnar_late"]}
#ifndef COLCAST_SERVER_ENGINE_REWRITES_CHOICE_FILE_H_
#define COLCAST_SERVER_ENGINE_REWRITES_CHOICE_FILE_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "server/engine/rewrites/rewritten_graph.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

struct ChoiceFile {
  std::string path;
  std::set<std::string> rewrites;    // names of rewrites
  std::set<std::string> signatures;  // those for which the rewrites were proved
};

// Everything on which a choice depends: the versions of colcast and TensorFlow, the CPU, and the
// graphs of the model's signatures. Weights do not count, so the model's next version has the same
// key.
std::string GraphKey(const tensorflow::MetaGraphDef& model, const SignatureGraphs& graphs);

// Finds the choice for `key` in a file, or in the first matching *.json file of a folder. The error
// says why there is none.
absl::StatusOr<ChoiceFile> FindChoice(const std::string& path, const std::string& key);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_CHOICE_FILE_H_
