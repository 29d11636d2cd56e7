// Maps the int8 tables that an export wrote beside a model's checkpoint
// (export/convert/_rounded_tables.py).
#ifndef COLCAST_SERVER_ENGINE_MAPPING_INT8_FILES_H_
#define COLCAST_SERVER_ENGINE_MAPPING_INT8_FILES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/rewrites/needed_graph.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

struct Int8Files {
  std::set<std::string> tables;  // the variables whose int8 form is mapped
  std::string note;              // for the operator
};

// Reads and checks the files in the version's `directory`, and adds to the session the int8 tables
// that they have for `variables`. Returns an error that names the files, and adds nothing, if they
// are missing or damaged, do not fit the variables, or were made for another checkpoint.
absl::StatusOr<Int8Files> MapInt8Tables(const std::string& directory,
                                        const std::set<std::string>& variables,
                                        tensorflow::Session* session);

// Removes the int8 tables that no graph reads, and frees the float32 values of tables that are read
// in int8 only. `served` maps each served signature to the tables that its graph reads. Returns
// notes for the operator, one sentence each.
std::vector<std::string> KeepReadForms(const std::set<std::string>& int8_tables,
                                       const std::map<std::string, TablesRead>& served,
                                       tensorflow::Session* session);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_INT8_FILES_H_
