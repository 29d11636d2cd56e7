// The choice file that `colcast tune --graphs` writes: which rewrites that change the last bits of
// scores a model may be served with, on which machine.
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
  std::set<std::string> rewrites;    // names of Rewrites
  std::set<std::string> signatures;  // that were proved with them
};

// What a choice depends on: colcast's and TensorFlow's version, the CPU, and the graphs of the
// model's signatures. Weights do not count, so that the next version of a model has the same key.
std::string GraphKey(const tensorflow::MetaGraphDef& model, const SignatureGraphs& graphs);

// The choice for `key` in a file, or in the first of a folder's *.json files that has one. The
// error says why there is none.
absl::StatusOr<ChoiceFile> FindChoice(const std::string& path, const std::string& key);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_CHOICE_FILE_H_
