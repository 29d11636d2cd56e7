// Rewritten forms of a model's signatures, beside the original ones in the same session.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_SIGNATURES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_SIGNATURES_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

struct RewrittenSignature {
  tensorflow::SignatureDef declared;  // the same inputs, outputs of the rewritten graph
  int lookups = 0;                    // that became part of a group
};

// Extends the session that `model` was loaded into with the rewritten graphs of its signatures, by
// name; those that nothing was found for, or that cannot be read, are left out. All that a rewrite
// does not change is shared: tables and other variables, placeholders, what comes before the
// lookups. Errors are the session's, whose original signatures still run.
absl::StatusOr<std::map<std::string, RewrittenSignature>> AddRewrittenSignatures(
    const tensorflow::MetaGraphDef& model, tensorflow::Session* session);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_SIGNATURES_H_
