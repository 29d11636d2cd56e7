// The resources of a session, such as variables, that its ops find by name.
#ifndef COLCAST_SERVER_ENGINE_SESSION_RESOURCES_H_
#define COLCAST_SERVER_ENGINE_SESSION_RESOURCES_H_

#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {

inline absl::StatusOr<tensorflow::ResourceMgr*> ResourcesOf(tensorflow::Session* session) {
  const tensorflow::DeviceMgr* devices = nullptr;
  absl::Status status = session->LocalDeviceManager(&devices);
  if (!status.ok()) return status;
  return devices->ListDevices().front()->resource_manager();
}

// The resource `name`; null if it does not exist. An empty container is the default one.
template <typename Resource>
tensorflow::core::RefCountPtr<Resource> FindResource(tensorflow::ResourceMgr* resources,
                                                     const std::string& name,
                                                     const std::string& container = "") {
  Resource* found = nullptr;
  const std::string& in = container.empty() ? resources->default_container() : container;
  if (!resources->Lookup(in, name, &found).ok()) return nullptr;
  return tensorflow::core::RefCountPtr<Resource>(found);
}

// Like FindResource(), but makes the resource if it does not exist.
template <typename Resource>
absl::StatusOr<tensorflow::core::RefCountPtr<Resource>> FindOrMakeResource(
    tensorflow::ResourceMgr* resources, const std::string& name) {
  Resource* found = nullptr;
  const auto make = [](Resource** made) {
    *made = new Resource;
    return absl::OkStatus();
  };
  absl::Status status =
      resources->LookupOrCreate<Resource>(resources->default_container(), name, &found, make);
  if (!status.ok()) return status;
  return tensorflow::core::RefCountPtr<Resource>(found);
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_SESSION_RESOURCES_H_
