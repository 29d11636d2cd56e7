// Schemas of request messages and of PredictResponse. They serve rare checks: whether sub-messages
// that the server ignores are valid, whether another server's answer is valid, and where a request
// is malformed.
#ifndef COLCAST_SERVER_WIRE_SCHEMA_H_
#define COLCAST_SERVER_WIRE_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/base/status.h"
#include "server/wire/reader.h"

namespace colcast {

enum class FieldKind : uint8_t {
  kPlain,  // needs no more checks than an unknown field; listed for its name
  kString,
  kMessage,
  kMapEntry,        // a message with a key and a value
  kRepeatedVarint,  // this and the next two may be packed
  kRepeatedFixed32,
  kRepeatedFixed64,
};

struct MessageSchema;

struct FieldSchema {
  uint32_t number;
  FieldKind kind;
  const char* name;
  const MessageSchema* message = nullptr;  // for kMessage and kMapEntry
};

// Fields that are not listed are skipped as unknown.
struct MessageSchema {
  const FieldSchema* fields;
  size_t field_count;
};

// The next two treat Examples as bytes, because the model's own parser checks them.
extern const MessageSchema kExampleRequest;  // for ClassificationRequest and RegressionRequest
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
  std::string path;  // for example inputs["age"].value.tensor_shape
  std::string reason;
  size_t offset = 0;  // position of the byte where reading stopped, in the outermost message
};

// Whether protobuf would accept the message. At most `depth` levels of messages may nest below it;
// a negative `depth` is an error. On failure fills `malformed`, which may be null.
bool CheckMessage(Reader message, const MessageSchema& schema, int depth, Malformed* malformed);

// INVALID_ARGUMENT: "malformed PredictRequest: PATH: REASON (byte 3 of 9)".
Status MalformedError(const char* message_name, const Malformed& malformed, size_t message_size);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_SCHEMA_H_
