#include "server/models/open_inference.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/inference/servable.h"
#include "server/wire/data_type.h"

namespace colcast::models {
namespace {

using ::inference::ModelMetadataResponse;
using Tensors = google::protobuf::RepeatedPtrField<ModelMetadataResponse::TensorMetadata>;
using TensorInfos = google::protobuf::Map<std::string, tensorflow::TensorInfo>;

constexpr int64_t kAnySize = -1;

void Describe(const TensorInfos& infos, Tensors* tensors) {
  const std::map<std::string, tensorflow::TensorInfo> sorted(infos.begin(), infos.end());
  for (const auto& [name, info] : sorted) {
    auto* const tensor = tensors->Add();
    tensor->set_name(name);
    const auto dtype = static_cast<DataType>(info.dtype());
    const std::string_view datatype = InferDatatypeName(dtype);
    tensor->set_datatype(datatype.empty() ? DataTypeName(dtype) : std::string(datatype));
    if (info.tensor_shape().unknown_rank()) tensor->add_shape(kAnySize);
    for (const auto& dim : info.tensor_shape().dim()) tensor->add_shape(dim.size());
  }
}

}  // namespace

Status DescribeModel(const ModelManager& models, const ModelSpec& spec,
                     ModelMetadataResponse* response) {
  std::shared_ptr<const Servable> servable;
  if (Status status = models.served().Find(spec, &servable); !status.ok()) return status;
  const inference::Signature* const found = servable->Find(spec.signature_name);
  if (found == nullptr) return servable->NoSignature(spec.signature_name);
  std::vector<VersionStatus> versions;
  ModelSpec all;
  all.name = spec.name;
  if (Status status = models.GetStatus(all, &versions); !status.ok()) return status;
  response->set_name(spec.name);
  response->set_platform("tensorflow_savedmodel");
  for (const VersionStatus& version : versions) {
    if (version.state == VersionState::kAvailable) {
      response->add_versions(std::to_string(version.version));
    }
  }
  tensorflow::SignatureDef signature = *found->def;
  if (servable->items() != nullptr) servable->items()->AddKeys(&signature);
  Describe(signature.inputs(), response->mutable_inputs());
  Describe(signature.outputs(), response->mutable_outputs());
  return OkStatus();
}

Status DescribeVersions(const ModelManager& models, const ModelSpec& spec,
                        tensorflow::serving::GetModelStatusResponse* response) {
  using tensorflow::serving::ModelVersionStatus;
  std::vector<VersionStatus> versions;
  if (Status status = models.GetStatus(spec, &versions); !status.ok()) return status;
  for (const VersionStatus& version : versions) {
    ModelVersionStatus* const entry = response->add_model_version_status();
    entry->set_version(version.version);
    entry->set_state(static_cast<ModelVersionStatus::State>(version.state));
    entry->mutable_status()->set_error_code(
        static_cast<tensorflow::error::Code>(version.error.code));
    entry->mutable_status()->set_error_message(version.error.message);
  }
  return OkStatus();
}

}  // namespace colcast::models
