// Frees the float32 values of variables that a model's signatures do not read, or read only in
// rounded form.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_FLOAT32_TABLES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_FLOAT32_TABLES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/rewrites/table_readers.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

// Makes rounded tables for the variables that have none yet.
absl::Status MakeRoundedTables(const RowTypes& variables, tensorflow::Session* session);

// Drops the float32 values of tables that are read only in rounded form, and of `variables` that no
// signature reads. REQUIRES that the rounded tables exist. `served` says, by signature, what the
// graphs of served signatures read. Returns notes for the operator, one sentence each.
std::vector<std::string> DropUnread(const std::map<std::string, TablesRead>& served,
                                    const std::set<std::string>& variables,
                                    tensorflow::Session* session);

// Collects what a model's signatures read, while the model is loaded.
class TablesInUse {
 public:
  TablesInUse() = default;  // drops nothing
  // `unserved` are signatures that no request can run.
  TablesInUse(const tensorflow::MetaGraphDef& model, const std::vector<std::string>& unserved);

  // Variables that may be read in rounded form.
  const std::set<std::string>& only_looked_up() const { return only_looked_up_; }

  // Records that a signature is served by a graph that reads `form`, or by the saved graph if
  // `form` is null.
  void Serve(const std::string& signature, const TablesRead* form);

  std::vector<std::string> Drop(tensorflow::Session* session) const {
    return DropUnread(served_, variables_, session);
  }

 private:
  std::map<std::string, TablesRead> saved_, served_;  // by signature
  std::set<std::string> variables_;
  std::set<std::string> only_looked_up_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_FLOAT32_TABLES_H_
