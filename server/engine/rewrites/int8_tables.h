// The int8 tables of a session, which all graphs that run in it share.
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

  // The table of a variable that is a matrix of float32, made when it is first asked for. An update
  // of the variable after that is not seen: there must be nothing that can change it
  // (TablesOnlyLookedUp() of table_readers.h). Errors are those of looking the variable up;
  // INVALID_ARGUMENT for what is no such matrix.
  absl::StatusOr<std::shared_ptr<const Int8Table>> Find(const std::string& container,
                                                        const std::string& variable,
                                                        tensorflow::ResourceMgr* resources);

  // Frees the tables of all other variables; one that is asked for again is made again.
  void KeepOnly(const std::set<std::string>& variables);

  std::string DebugString() const override { return "tables in int8"; }

 private:
  std::shared_mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Int8Table>> tables_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLES_H_
