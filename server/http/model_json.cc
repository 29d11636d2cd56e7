#include "server/http/model_json.h"

#include <google/protobuf/util/json_util.h>

#include <iterator>

#include "server/http1/gzip.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"

namespace colcast::http {
namespace {

Status ToJson(const google::protobuf::Message& message, std::string* json) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  const auto status = google::protobuf::util::MessageToJsonString(message, json, options);
  if (status.ok()) return OkStatus();
  return Internal("the ", message.GetTypeName(), " has no form in JSON: ", status.ToString());
}

}  // namespace

Status WriteModelStatus(const std::vector<models::VersionStatus>& versions, std::string* json) {
  using tensorflow::serving::ModelVersionStatus;
  tensorflow::serving::GetModelStatusResponse response;
  for (const models::VersionStatus& version : versions) {
    ModelVersionStatus* entry = response.add_model_version_status();
    entry->set_version(version.version);
    entry->set_state(static_cast<ModelVersionStatus::State>(version.state));
    entry->mutable_status()->set_error_code(
        static_cast<tensorflow::error::Code>(version.error.code));
    entry->mutable_status()->set_error_message(version.error.message);
  }
  return ToJson(response, json);
}

Status WriteMetadata(const inference::Servable& servable, std::string* json) {
  tensorflow::serving::ModelSpec spec;
  spec.set_name(servable.name());
  spec.mutable_version()->set_value(servable.version());
  tensorflow::serving::SignatureDefMap map;
  *map.mutable_signature_def() = servable.signatures();
  std::string spec_json, map_json;
  if (Status status = ToJson(spec, &spec_json); !status.ok()) return status;
  if (Status status = ToJson(map, &map_json); !status.ok()) return status;
  // Leaves out the Any that holds the signatures, as TF Serving does.
  *json = "{\n\"model_spec\":" + spec_json + ",\n\"metadata\": {\"signature_def\": " + map_json +
          "}\n}\n";
  return OkStatus();
}

Status MetadataAnswers::Find(const std::shared_ptr<const inference::Servable>& servable,
                             Response* answer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [place, is_new] = answers_.try_emplace(servable);
  if (is_new) {
    Status status = WriteMetadata(*servable, &place->second.body);
    if (!status.ok()) {
      answers_.erase(place);
      return status;
    }
    place->second.gzipped = Gzip(place->second.body);
    for (auto each = answers_.begin(); each != answers_.end();) {
      each = each->first.expired() ? answers_.erase(each) : std::next(each);
    }
  }
  *answer = place->second;
  return OkStatus();
}

}  // namespace colcast::http
