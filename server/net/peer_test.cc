#include "server/net/peer.h"

#include <gtest/gtest.h>

namespace colcast::net {
namespace {

TEST(HostOfTest, LeavesThePortOut) {
  EXPECT_EQ(HostOf("ipv4:10.0.0.7:51234"), "ipv4:10.0.0.7");
  EXPECT_EQ(HostOf("unix:/run/s"), "unix:/run/s");
  EXPECT_EQ(HostOf("unix:"), "unix:");
}

TEST(HostOfTest, AnIpv6NetworkIsOneHostAndAMappedAddressIsItsIpv4One) {
  EXPECT_EQ(HostOf("ipv6:[2001:db8:1:2:3:4:5:6]:51234"), "ipv6:[2001:db8:1:2::]/64");
  EXPECT_EQ(HostOf("ipv6:[2001:db8:1:2:ffff::9]:80"), "ipv6:[2001:db8:1:2::]/64");
  EXPECT_NE(HostOf("ipv6:[2001:db8:1:3::9]:80"), HostOf("ipv6:[2001:db8:1:2::9]:80"));
  EXPECT_EQ(HostOf("ipv6:[::ffff:10.0.0.7]:80"), "ipv4:10.0.0.7");
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
