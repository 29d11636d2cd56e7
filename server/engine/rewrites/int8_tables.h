// The int8 tables of a session, shared by all graphs that run in it.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLES_H_

#include <map>
#include <memory>
#include <set>
#include <shared_mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/engine/rewrites/int8_table.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace colcast::engine {

class Int8Tables final : public tensorflow::ResourceBase {
 public:
  static absl::StatusOr<tensorflow::core::RefCountPtr<Int8Tables>> In(
      tensorflow::ResourceMgr* resources);

  // The table of a variable, which must be a float32 matrix; made on first use. Later updates of
  // the variable are not seen, so nothing may be able to change it (TablesOnlyLookedUp() in
  // table_readers.h). Errors are those of looking up the variable; INVALID_ARGUMENT for any other
  // variable.
  absl::StatusOr<std::shared_ptr<const Int8Table>> Find(const std::string& container,
                                                        const std::string& variable,
                                                        tensorflow::ResourceMgr* resources);

  // Sets the table of a variable that has none yet.
  void Add(const std::string& container, const std::string& variable,
           std::shared_ptr<const Int8Table> table);

  // Frees the tables of all other variables. A freed table is made again when requested.
  void KeepOnly(const std::set<std::string>& variables);

  std::string DebugString() const override { return "tables in int8"; }

 private:
  std::shared_mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Int8Table>> tables_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLES_H_
