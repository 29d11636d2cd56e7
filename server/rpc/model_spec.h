// tensorflow.serving.ModelSpec from protobuf's form to that of server/wire.
#ifndef COLCAST_SERVER_RPC_MODEL_SPEC_H_
#define COLCAST_SERVER_RPC_MODEL_SPEC_H_

#include "server/wire/predict_request.h"
#include "tensorflow_serving/apis/model.pb.h"

namespace colcast::rpc {

inline ModelSpec FromProto(const tensorflow::serving::ModelSpec& proto) {
  ModelSpec spec;
  spec.name = proto.name();
  spec.signature_name = proto.signature_name();
  if (proto.has_version()) spec.version = proto.version().value();
  if (proto.version_choice_case() == tensorflow::serving::ModelSpec::kVersionLabel) {
    spec.version_label = proto.version_label();
  }
  return spec;
}

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_MODEL_SPEC_H_
