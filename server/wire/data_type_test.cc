#include "server/wire/data_type.h"

#include <gtest/gtest.h>

namespace colcast {
namespace {

TEST(DataTypeTest, ElementSizesAreThoseOfABuffer) {
  EXPECT_EQ(ElementSize(DT_BOOL), 1u);
  EXPECT_EQ(ElementSize(DT_HALF), 2u);
  EXPECT_EQ(ElementSize(DT_FLOAT), 4u);
  EXPECT_EQ(ElementSize(DT_INT64), 8u);
  EXPECT_EQ(ElementSize(DT_COMPLEX64), 8u);
  EXPECT_EQ(ElementSize(DT_COMPLEX128), 16u);
  EXPECT_EQ(ElementSize(DT_INT4), 1u);
}

TEST(DataTypeTest, WhatHasNoFixedSizeOrCannotBeSentHasNone) {
  for (const int dtype : {DT_INVALID, DT_STRING, DT_RESOURCE, DT_VARIANT}) {
    EXPECT_EQ(ElementSize(static_cast<DataType>(dtype)), 0u) << dtype;
  }
  for (const int unknown : {-1, 33, 101, 1 << 30}) {
    EXPECT_EQ(ElementSize(static_cast<DataType>(unknown)), 0u) << unknown;
  }
}

TEST(DataTypeTest, NamesAreTensorFlows) {
  EXPECT_EQ(DataTypeName(DT_INVALID), "DT_INVALID");
  EXPECT_EQ(DataTypeName(DT_STRING), "DT_STRING");
  EXPECT_EQ(DataTypeName(DT_UINT2), "DT_UINT2");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(100 + DT_INT64)), "DT_INT64_REF");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(77)), "dtype 77");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(100)), "dtype 100");
  EXPECT_EQ(DataTypeName(static_cast<DataType>(-3)), "dtype -3");
}

}  // namespace
}  // namespace colcast
