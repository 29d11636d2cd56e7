// The int8 tables of a session, which all graphs that run in it share.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLES_H_

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/rewrites/int8_table.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"

namespace colcast::engine {

class Int8Tables final : public tensorflow::ResourceBase {
 public:
  static absl::StatusOr<tensorflow::core::RefCountPtr<Int8Tables>> In(
      tensorflow::ResourceMgr* resources);

  // The table of a variable that is a matrix of float32, made when it is first asked for and again
  // when the variable has another value: its tensor is held on to, so that TensorFlow cannot change
  // that in place. Null for a variable whose value is changed in place all the same. Errors are
  // those of looking the variable up; INVALID_ARGUMENT for what is no such matrix.
  absl::StatusOr<std::shared_ptr<const Int8Table>> Find(const tensorflow::ResourceHandle& variable,
                                                        tensorflow::ResourceMgr* resources);

  // Deletes a variable and leaves its table, which Find() returns from now on; what reads the
  // variable itself fails. Returns the bytes of float32 that are freed.
  absl::StatusOr<int64_t> DropFloat32(const std::string& container, const std::string& name,
                                      tensorflow::ResourceMgr* resources);

  std::string DebugString() const override { return "tables in int8"; }

 private:
  struct Entry {
    tensorflow::Tensor source;  // what was rounded; none once that was dropped
    std::shared_ptr<const Int8Table> table;
    bool is_final = false;  // the variable was deleted
  };
  using Key = std::pair<std::string, std::string>;  // container and name

  absl::StatusOr<std::shared_ptr<const Int8Table>> TableOf(const Key& key,
                                                           tensorflow::Var* variable);
  std::shared_ptr<const Int8Table> Current(const Key& key, const tensorflow::Tensor& value);

  std::shared_mutex mutex_;
  std::map<Key, Entry> entries_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_INT8_TABLES_H_
