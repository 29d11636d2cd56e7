// The resources of a session, such as variables, that its ops find by name.
#ifndef COLCAST_SERVER_ENGINE_SESSION_RESOURCES_H_
#define COLCAST_SERVER_ENGINE_SESSION_RESOURCES_H_

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

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_SESSION_RESOURCES_H_
