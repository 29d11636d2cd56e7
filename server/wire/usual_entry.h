// The entries of PredictRequest.inputs as protobuf's libraries write them.
#ifndef COLCAST_SERVER_WIRE_USUAL_ENTRY_H_
#define COLCAST_SERVER_WIRE_USUAL_ENTRY_H_

#include <string_view>

#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"

namespace colcast {

// Reads an entry whose name is expected to be `name`, in a fraction of the time that protobuf's
// rules take: the name first, then dtype, shape and one field with all values, every length in as
// few bytes as it may have. False if it is anything else, malformed maybe, or lies in more than one
// slice; `*column`, which is empty at first, then holds anything.
bool ReadUsualEntry(const Bytes& entry, std::string_view name, Column* column);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_USUAL_ENTRY_H_
