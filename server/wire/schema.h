// The messages of requests, and one of answers, as tables, for what is not hot: checking
// sub-messages that the server ignores (protobuf would refuse them too), saying where a malformed
// request is broken, checking what another server has answered.
#ifndef COLCAST_SERVER_WIRE_SCHEMA_H_
#define COLCAST_SERVER_WIRE_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/base/status.h"
#include "server/wire/reader.h"

namespace colcast {

enum class FieldKind : uint8_t {
  kPlain,  // nothing to check that an unknown field would not have: listed for its name
  kString,
  kMessage,
  kMapEntry,        // a message, too
  kRepeatedVarint,  // this and the next two may come packed
  kRepeatedFixed32,
  kRepeatedFixed64,
};

struct MessageSchema;

struct FieldSchema {
  uint32_t number;
  FieldKind kind;
  const char* name;
  const MessageSchema* message = nullptr;  // of kMessage and kMapEntry
};

// Fields that are not listed are skipped as unknown.
struct MessageSchema {
  const FieldSchema* fields;
  size_t field_count;
};

// Examples are listed as bytes in the next two: the model's own parser judges them.
extern const MessageSchema kExampleRequest;  // ClassificationRequest and RegressionRequest
extern const MessageSchema kMultiInferenceRequest;
extern const MessageSchema kInferRequest;  // ModelInferRequest
extern const MessageSchema kInferTensorContents;
extern const MessageSchema kPredictRequest;
extern const MessageSchema kPredictResponse;
extern const MessageSchema kPredictStreamedOptions;
extern const MessageSchema kRequestOptions;
extern const MessageSchema kTensorProto;
extern const MessageSchema kResourceHandleProto;
extern const MessageSchema kVariantTensorDataProto;

// Where and why a message is malformed.
struct Malformed {
  std::string path;  // inputs["age"].value.tensor_shape
  std::string reason;
  size_t offset = 0;  // in the outermost message, of the byte at which reading stopped
};

// Whether protobuf would parse the message. `depth`: how deep messages may still nest below it;
// a negative one is an error. `malformed`, which may be null, is filled if the answer is no.
bool CheckMessage(Reader message, const MessageSchema& schema, int depth, Malformed* malformed);

// INVALID_ARGUMENT: "malformed PredictRequest: PATH: REASON (byte 3 of 9)".
Status MalformedError(const char* message_name, const Malformed& malformed, size_t message_size);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_SCHEMA_H_
