// Rewritten forms of a model's signatures, beside the original ones in the same graph.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_SIGNATURES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_SIGNATURES_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/engine/rewrites/id_ranges.h"
#include "server/engine/rewrites/rewrite.h"
#include "server/engine/rewrites/table_readers.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

struct RewrittenSignature {
  std::string name;                   // of its rewrites: "grouped lookups"
  std::string says;                   // what they did: "14 lookups run as one op"
  bool exact = true;                  // whether all of its rewrites are
  std::set<std::string> loses;        // the names of those that are not
  std::string why_not;                // may not be served: what it loses has to stay as it is
  double tolerance_share = 1;         // the least of its rewrites'
  tensorflow::SignatureDef declared;  // the same inputs, outputs of the rewritten graph
  TablesRead tables;                  // that the rewritten graph reads
};

struct SignatureForms {
  std::vector<RewrittenSignature> forms;
  IdRanges ids;  // of the signature's inputs
};

// By signature.
using RewrittenSignatures = std::map<std::string, SignatureForms>;

// Which forms of a signature are to be made: none, all, or the one of a name.
struct WantedForms {
  bool any = true;
  std::string only;  // all if it is empty
};
using WantForms = std::function<WantedForms(const std::string& signature)>;

// Appends rewritten graphs of its signatures to the model's graph: of the exact rewrites that find
// something every set, and sets of the others on top of all of those. Signatures that nothing was
// found for, or that cannot be read, are left out. All that a rewrite does not change is shared:
// tables and other variables, placeholders, what comes before the lookups.
RewrittenSignatures AddRewrittenSignatures(const std::vector<Rewrite>& rewrites,
                                           const WantForms& want, tensorflow::MetaGraphDef* model);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITTEN_SIGNATURES_H_
