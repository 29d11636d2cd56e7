// Reads configuration files: protocol buffers in text form.
#ifndef COLCAST_SERVER_PROTOS_TEXT_PROTO_H_
#define COLCAST_SERVER_PROTOS_TEXT_PROTO_H_

#include <google/protobuf/message.h>

#include <string>

#include "server/base/status.h"

namespace colcast {

// Parses `text`, a message in text form that was read from `source`. On failure returns
// INVALID_ARGUMENT with the source, line, column and expected token.
Status ParseTextProto(const std::string& text, const std::string& source,
                      google::protobuf::Message* message);

// Like ParseTextProto(), for the file at `path`. Also returns the errors of ReadFile().
Status ReadTextProto(const std::string& path, google::protobuf::Message* message);

}  // namespace colcast

#endif  // COLCAST_SERVER_PROTOS_TEXT_PROTO_H_
