#include "server/engine/rewrites/int8_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "server/engine/rewrites/float32_tables.h"
#include "server/engine/rewrites/lookup_testing.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"

namespace colcast::engine {
namespace {

using Int8TablesTest = LookupGraphTest;

TEST_F(Int8TablesTest, ATableOfAFormThatIsNotServedIsFreed) {
  const auto session = Start(InInt8());
  const tensorflow::DeviceMgr* devices = nullptr;
  TF_CHECK_OK(session->LocalDeviceManager(&devices));
  auto* const resources = devices->ListDevices().front()->resource_manager();
  const auto table = [&] {
    return std::weak_ptr(*(*Int8Tables::In(resources))->Find("localhost", "table", resources));
  };
  const auto served = table();
  DropUnread({{"scores", {{"table"}, {"table"}}}}, {"table"}, session.get());
  EXPECT_FALSE(served.expired());
  DropUnread({{"scores", {{"table"}, {}}}}, {"table"}, session.get());
  EXPECT_TRUE(served.expired());
}

}  // namespace
}  // namespace colcast::engine
