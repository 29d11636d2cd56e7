// Which record holds for which of a model's signatures.
#ifndef COLCAST_SERVER_ENGINE_RECORD_RECORDS_BY_NAME_H_
#define COLCAST_SERVER_ENGINE_RECORD_RECORDS_BY_NAME_H_

#include <map>
#include <string>
#include <vector>

#include "google/protobuf/map.h"
#include "server/engine/record/row_record.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

using SignatureMap = google::protobuf::Map<std::string, tensorflow::SignatureDef>;

// The records of the signatures that an export wrote; of those they were made from, which are the
// same functions of the same rows; and of serving_default, where that is a copy of a new one: then
// what had the name before has another (`colcast export --make-default`).
std::map<std::string, RowRecord> RecordsByName(const std::vector<RecordedSignatures>& records,
                                               const SignatureMap& signatures);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_RECORD_RECORDS_BY_NAME_H_
