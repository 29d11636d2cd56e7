// Gives back the memory of what a model's signatures do not read, or in int8 alone.
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

// Makes the int8 tables of variables that have none yet.
absl::Status MakeInt8Tables(const std::set<std::string>& variables, tensorflow::Session* session);

// Drops the float32 of every table that one of the signatures reads in int8 and none as it is, and
// those of `variables` that none reads at all. `served`: what the graphs read that requests can
// run, by signature. Returns what an operator should know, a sentence each.
std::vector<std::string> DropUnread(const std::map<std::string, TablesRead>& served,
                                    const std::set<std::string>& variables,
                                    tensorflow::Session* session);

// What a model's signatures read, while it is loaded.
class TablesInUse {
 public:
  TablesInUse() = default;  // nothing is dropped
  // `unserved`: signatures that no request can run.
  TablesInUse(const tensorflow::MetaGraphDef& model, const std::vector<std::string>& unserved);

  // Variables that may be read in int8.
  const std::set<std::string>& only_looked_up() const { return only_looked_up_; }

  // A signature is served in a form that reads this; without, as it was saved.
  void Serve(const std::string& signature, const TablesRead* form);
  // It is served as it was saved, too.
  void ServeAsSaved(const std::string& signature);

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
