// The rounded tables of a session, shared by all graphs that run in it.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_TABLES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_TABLES_H_

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "server/engine/rewrites/rounded_table.h"
#include "server/engine/rewrites/table_readers.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace colcast::engine {

class RoundedTables final : public tensorflow::ResourceBase {
 public:
  static absl::StatusOr<tensorflow::core::RefCountPtr<RoundedTables>> In(
      tensorflow::ResourceMgr* resources);

  // Returns the rounded table of a variable, made on first use. The table does not follow updates
  // of the variable, so nothing may update it (TablesOnlyLookedUp() in table_readers.h). Returns
  // the error of looking up the variable, or INVALID_ARGUMENT if it is not a float32 matrix.
  absl::StatusOr<std::shared_ptr<const RoundedTable>> Find(const std::string& container,
                                                           const std::string& variable,
                                                           tensorflow::DataType row_type,
                                                           tensorflow::ResourceMgr* resources);

  // Keeps `table` for Find(), unless the variable already has a table of that type.
  void Add(const std::string& container, const std::string& variable,
           std::shared_ptr<const RoundedTable> table);

  // Frees the tables of all other variables. A freed table is made again when requested.
  void KeepOnly(const RowTypes& variables);

  std::string DebugString() const override { return "rounded tables"; }

 private:
  std::shared_mutex mutex_;
  std::map<std::tuple<std::string, std::string, tensorflow::DataType>,
           std::shared_ptr<const RoundedTable>>
      tables_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_TABLES_H_
