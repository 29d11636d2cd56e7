// Assigns records to a model's signatures.
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

// A record applies to the signature that an export wrote; to that signature's source, which
// computes the same function of the same rows; and to serving_default if it is a copy of an
// exported signature (`colcast export --make-default`; the original default then has another name).
std::map<std::string, RowRecord> RecordsByName(const std::vector<RecordedSignatures>& records,
                                               const SignatureMap& signatures);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_RECORD_RECORDS_BY_NAME_H_
