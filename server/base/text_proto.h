// Configuration files: protocol buffers in text form.
#ifndef COLCAST_SERVER_BASE_TEXT_PROTO_H_
#define COLCAST_SERVER_BASE_TEXT_PROTO_H_

#include <google/protobuf/message.h>

#include <string>

#include "server/base/status.h"

namespace colcast {

// As ReadFile() if the file cannot be read; INVALID_ARGUMENT, with path, line, column and what was
// expected there, if it is no `message` in text form.
Status ReadTextProto(const std::string& path, google::protobuf::Message* message);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_TEXT_PROTO_H_
