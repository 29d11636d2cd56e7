// Presents the tf.Examples of several requests, or of a slice of one, as one request, without
// copying their bytes.
#ifndef COLCAST_SERVER_ENGINE_BATCH_EXAMPLE_STRINGS_H_
#define COLCAST_SERVER_ENGINE_BATCH_EXAMPLE_STRINGS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/input.h"
#include "server/engine/signature.h"
#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"

namespace colcast::engine {

// Adds views of a column's strings: `rows` of them, or a single one repeated. Returns false if the
// column has another dtype or shape, or cannot be read.
bool AddStrings(const Input& column, int64_t rows, std::vector<Bytes>* strings);

// Adds the strings to a request as the signature's only input.
void AddExamples(const Signature& signature, absl::Span<const Bytes> strings,
                 DecodedRequest* request);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BATCH_EXAMPLE_STRINGS_H_
