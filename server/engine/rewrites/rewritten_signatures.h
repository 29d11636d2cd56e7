// Rewritten forms of a model's signatures, beside the original ones in the same session.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_SIGNATURES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_SIGNATURES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/rewrites/rewrite.h"
#include "server/engine/rewrites/table_readers.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

struct RewrittenSignature {
  std::string name;                   // of its rewrites: "grouped lookups"
  std::string says;                   // what they did: "14 lookups run as one op"
  bool exact = true;                  // whether all of its rewrites are
  tensorflow::SignatureDef declared;  // the same inputs, outputs of the rewritten graph
  TablesRead tables;                  // that the rewritten graph reads
};

// By signature: a form for every set of rewrites that all find something to change.
using RewrittenSignatures = std::map<std::string, std::vector<RewrittenSignature>>;

// Extends the session that `model` was loaded into with the rewritten graphs of its signatures;
// those that nothing was found for, or that cannot be read, are left out. All that a rewrite does
// not change is shared: tables and other variables, placeholders, what comes before the lookups.
// Errors are the session's, whose original signatures still run.
absl::StatusOr<RewrittenSignatures> AddRewrittenSignatures(const tensorflow::MetaGraphDef& model,
                                                           const std::vector<Rewrite>& rewrites,
                                                           tensorflow::Session* session);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_SIGNATURES_H_
