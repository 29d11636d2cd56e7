// Lets a session use another one's devices, and so its variables and tables.
#ifndef COLCAST_SERVER_ENGINE_SHARED_DEVICES_H_
#define COLCAST_SERVER_ENGINE_SHARED_DEVICES_H_

#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/device_mgr.h"

namespace colcast::engine {

class SharedDevices final : public tensorflow::DeviceMgr {
 public:
  // `devices` must outlive this object.
  explicit SharedDevices(const tensorflow::DeviceMgr& devices) : devices_(devices) {}

  void ListDeviceAttributes(std::vector<tensorflow::DeviceAttributes>* devices) const override {
    devices_.ListDeviceAttributes(devices);
  }
  std::vector<tensorflow::Device*> ListDevices() const override { return devices_.ListDevices(); }
  std::string DebugString() const override { return devices_.DebugString(); }
  std::string DeviceMappingString() const override { return devices_.DeviceMappingString(); }
  absl::Status LookupDevice(absl::string_view name, tensorflow::Device** device) const override {
    return devices_.LookupDevice(name, device);
  }
  bool ContainsDevice(int64_t incarnation) const override {
    return devices_.ContainsDevice(incarnation);
  }
  void ClearContainers(absl::Span<const std::string> containers) const override {
    devices_.ClearContainers(containers);
  }
  int NumDeviceType(const std::string& type) const override { return devices_.NumDeviceType(type); }
  int NumDevices() const override { return devices_.NumDevices(); }
  tensorflow::Device* HostCPU() const override { return devices_.HostCPU(); }

 private:
  const tensorflow::DeviceMgr& devices_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_SHARED_DEVICES_H_
