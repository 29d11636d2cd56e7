// Converts models' status and metadata to JSON by protobuf's rules, as TF Serving does.
#ifndef COLCAST_SERVER_HTTP_MODEL_JSON_H_
#define COLCAST_SERVER_HTTP_MODEL_JSON_H_

#include <absl/base/thread_annotations.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/http1/message.h"
#include "server/inference/servable.h"
#include "server/models/model_status.h"

namespace colcast::http {

// Writes a GetModelStatusResponse.
Status WriteModelStatus(const std::vector<models::VersionStatus>& versions, std::string* json);

// Writes a GetModelMetadataResponse with the model's signatures.
Status WriteMetadata(const inference::Servable& servable, std::string* json);

// The answers with metadata, each written once per version. Thread-safe.
class MetadataAnswers {
 public:
  Status Find(const std::shared_ptr<const inference::Servable>& servable, Response* answer);

 private:
  std::mutex mutex_;
  std::map<std::weak_ptr<const inference::Servable>, Response, std::owner_less<>> answers_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_MODEL_JSON_H_
