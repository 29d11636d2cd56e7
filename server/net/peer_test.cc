#include "server/net/peer.h"

#include <gtest/gtest.h>

namespace colcast::net {
namespace {

TEST(HostOfTest, LeavesThePortOut) {
  EXPECT_EQ(HostOf("ipv4:10.0.0.7:51234"), "ipv4:10.0.0.7");
  EXPECT_EQ(HostOf("ipv6:%5B::1%5D:51234"), "ipv6:%5B::1%5D");
  EXPECT_EQ(HostOf("unix:/run/s"), "unix:/run/s");
  EXPECT_EQ(HostOf("unix:"), "unix:");
}

TEST(IsLocalTest, TheLoopbackInterfaceAndUnixSocketsAre) {
  for (const char* peer : {"ipv4:127.0.0.1:51234", "ipv4:127.8.0.1:1", "ipv6:%5B::1%5D:51234",
                           "ipv6:[::1]:51234", "unix:", "unix:/run/s"}) {
    EXPECT_TRUE(IsLocal(peer)) << peer;
  }
  for (const char* peer : {"ipv4:10.127.0.1:1", "ipv4:12.7.0.1:1", "ipv6:%5B::127.0.0.1%5D:1",
                           "ipv6:%5Bfe80::1%5D:1", "ipv6:%5B::12%5D:1", ""}) {
    EXPECT_FALSE(IsLocal(peer)) << peer;
  }
}

}  // namespace
}  // namespace colcast::net
