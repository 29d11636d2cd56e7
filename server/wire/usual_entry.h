// A fast path for entries of PredictRequest.inputs in the form that protobuf's libraries write.
#ifndef COLCAST_SERVER_WIRE_USUAL_ENTRY_H_
#define COLCAST_SERVER_WIRE_USUAL_ENTRY_H_

#include <string_view>

#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"

namespace colcast {

// Reads an entry whose name is expected to be `name`, in a fraction of the general decoder's time.
// It requires one slice and this order: the name, then dtype, shape and one field with all values.
// The dtype and the lengths of name and shape must take one byte each. Returns false for anything
// else, malformed entries included; `*column`, which must be empty, is then unspecified.
bool ReadUsualEntry(const Bytes& entry, std::string_view name, Column* column);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_USUAL_ENTRY_H_
