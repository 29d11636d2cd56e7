#include "server/states/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/wire/column.h"
#include "server/wire/testing.h"

namespace colcast::states {
namespace {

Key HashOf(const KeyHash& hash, const std::string& text) { return hash(text.data(), text.size()); }

TEST(KeyHash, DifferentBytesHaveDifferentKeys) {
  const KeyHash hash;
  EXPECT_NE(HashOf(hash, "user 7"), HashOf(hash, "user 8"));
  EXPECT_NE(HashOf(hash, ""), HashOf(hash, std::string(1, '\0')));
}

TEST(KeyHash, EachInstanceHasItsOwnSecret) {
  EXPECT_NE(HashOf(KeyHash(), "user 7"), HashOf(KeyHash(), "user 7"));
}

// From HighwayHash's own test vectors for this key.
TEST(KeyHash, HashesAreHighwayHashes) {
  const KeyHash hash(
      {0x0706050403020100, 0x0F0E0D0C0B0A0908, 0x1716151413121110, 0x1F1E1D1C1B1A1918});
  const Key key = HashOf(hash, "");
  EXPECT_EQ(key.low, 0x0FED268F9D8FFEC7u);
  EXPECT_EQ(key.high, 0x33565E767F093E6Fu);
}

using ::testing::ElementsAre;

// kA and kB differ only in the high word.
const Key kA = {1, 7}, kB = {2, 7}, kC = {1, 8};

TEST(FindDistinctRows, ReturnsTheFirstRowOfEachKeyAndAnIndex) {
  std::vector<int64_t> first, index;
  ASSERT_TRUE(FindDistinctRows({kA, kB, kA, kC, kB}, 3, &first, &index));
  EXPECT_THAT(first, ElementsAre(0, 1, 3));
  EXPECT_THAT(index, ElementsAre(0, 1, 0, 2, 1));
}

TEST(FindDistinctRows, FailsBeyondTheLimit) {
  std::vector<int64_t> first, index;
  EXPECT_FALSE(FindDistinctRows({kA, kB, kA, kC, kB}, 2, &first, &index));
}

StoredRows RowsOf(uint64_t table, const std::vector<uint32_t>& numbers) {
  return {table, Span<uint32_t>(numbers)};
}

TEST(StoredKeysTest, FindsInsertedKeys) {
  StoredKeys stored;
  std::vector<Key> keys;
  const std::vector<uint32_t> numbers = {7, 1'000'000, 0};
  EXPECT_FALSE(stored.Find(RowsOf(1, numbers), &keys));
  stored.Insert(RowsOf(1, numbers), {{1, 2}, {3, 4}, {5, 6}});
  const std::vector<uint32_t> others = {0, 7};
  ASSERT_TRUE(stored.Find(RowsOf(1, others), &keys));
  EXPECT_THAT(keys, ElementsAre(Key{5, 6}, Key{1, 2}));
}

TEST(StoredKeysTest, FindsNothingUnlessAllRowsAreKnown) {
  StoredKeys stored;
  std::vector<Key> keys;
  const std::vector<uint32_t> known = {1}, both = {1, 2};
  stored.Insert(RowsOf(1, known), {{1, 2}});
  EXPECT_FALSE(stored.Find(RowsOf(1, both), &keys));
}

TEST(StoredKeysTest, ANewTableReplacesThePreviousOne) {
  StoredKeys stored;
  std::vector<Key> keys;
  const std::vector<uint32_t> numbers = {1};
  stored.Insert(RowsOf(1, numbers), {{1, 2}});
  stored.Insert(RowsOf(2, numbers), {{3, 4}});
  EXPECT_FALSE(stored.Find(RowsOf(1, numbers), &keys));
  stored.Insert(RowsOf(1, numbers), {{1, 2}});  // by a request that still reads table 1
  ASSERT_TRUE(stored.Find(RowsOf(2, numbers), &keys));
  EXPECT_THAT(keys, ElementsAre(Key{3, 4}));
}

TEST(StoredKeysTest, RowsBeyondTheBlocksAreNotFound) {
  StoredKeys stored;
  std::vector<Key> keys;
  const std::vector<uint32_t> numbers = {UINT32_MAX};
  stored.Insert(RowsOf(1, numbers), {{1, 2}});
  EXPECT_FALSE(stored.Find(RowsOf(1, numbers), &keys));
}

const KeyHash kHash;

std::string Tensor(DataType dtype, const std::vector<int64_t>& dims, const std::string& values) {
  std::string shape;
  for (int64_t dim : dims) shape += BytesField(2, VarintField(1, dim));
  return VarintField(1, dtype) + BytesField(2, shape) + values;
}

std::string Int64s(const std::vector<uint64_t>& values) { return BytesField(10, Varints(values)); }
std::string Floats(const std::vector<float>& values) { return BytesField(5, Raw(values)); }
std::string Strings(const std::vector<std::string>& values) {
  std::string records;
  for (const std::string& value : values) records += BytesField(8, value);
  return records;
}

// A request with columns "0", "1", ...
std::string MessageOf(const std::vector<std::string>& tensors) {
  std::string message;
  for (size_t i = 0; i < tensors.size(); ++i) {
    message += BytesField(2, BytesField(1, std::to_string(i)) + BytesField(2, tensors[i]));
  }
  return message;
}

// The keys of `rows` rows, whose columns `add` adds.
template <typename Add>
std::vector<Key> KeysWith(int64_t rows, const Bytes& message, const Add& add) {
  DecodedRequest request;
  EXPECT_TRUE(DecodePredictRequest(message, &request).ok());
  RowKeys row_keys;
  row_keys.Begin(rows, kHash);
  for (const Column& column : request.columns()) add(column, &row_keys);
  std::vector<Key> keys;
  row_keys.Finish(&keys);
  return keys;
}

void AddRows(const Column& column, RowKeys* keys) {
  int64_t elements = 0;
  ASSERT_TRUE(ElementCount(column, &elements).ok());
  const Status status = keys->AddRows(column, elements);
  ASSERT_TRUE(status.ok()) << status.message;
}

// The keys of `rows` rows; checks that every slicing gives the same keys.
std::vector<Key> KeysOf(int64_t rows, const std::vector<std::string>& tensors) {
  std::vector<Key> first;
  ForEachSlicing(MessageOf(tensors), [&](const Bytes& bytes) {
    const std::vector<Key> keys = KeysWith(rows, bytes, AddRows);
    if (first.empty()) first = keys;
    EXPECT_EQ(keys, first);
  });
  return first;
}

TEST(RowKeys, KeysOfEqualRowsDoNotDependOnOtherRows) {
  const auto keys = KeysOf(3, {Tensor(DT_INT64, {3}, Int64s({5, 6, 5})),
                               Tensor(DT_STRING, {3}, Strings({"a", "b", "a"})),
                               Tensor(DT_FLOAT, {3}, Floats({1, 2, 1}))});
  EXPECT_EQ(keys[0], keys[2]);
  EXPECT_NE(keys[0], keys[1]);
  const auto alone =
      KeysOf(1, {Tensor(DT_INT64, {1}, Int64s({5})), Tensor(DT_STRING, {1}, Strings({"a"})),
                 Tensor(DT_FLOAT, {1}, Floats({1}))});
  EXPECT_EQ(alone[0], keys[0]);
}

TEST(RowKeys, KeysDoNotDependOnTheEncoding) {
  const auto typed = KeysOf(2, {Tensor(DT_INT64, {2}, Int64s({5, 6}))});
  EXPECT_EQ(KeysOf(2, {Tensor(DT_INT64, {2}, BytesField(4, Raw<int64_t>({5, 6})))}), typed);
  EXPECT_EQ(KeysOf(2, {Tensor(DT_INT64, {2}, VarintField(10, 5) + VarintField(10, 6))}), typed);
}

// The key of one row with `length` real values, padded to `entries`.
Key PaddedKey(DataType dtype, int64_t entries, const std::string& values, int64_t length) {
  const std::string message = MessageOf({Tensor(dtype, {1, entries}, values)});
  return KeysWith(1, Bytes(message), [&](const Column& column, RowKeys* keys) {
    EXPECT_TRUE(keys->AddRows(column, entries, &length).ok());
  })[0];
}

TEST(RowKeys, KeysDoNotDependOnPadding) {
  const Key key = PaddedKey(DT_INT64, 2, Int64s({5, 6}), 2);
  EXPECT_EQ(PaddedKey(DT_INT64, 4, Int64s({5, 6, 0, 0}), 2), key);
  EXPECT_EQ(PaddedKey(DT_INT64, 4, Int64s({5, 6, 9, 9}), 2), key);
  EXPECT_NE(PaddedKey(DT_INT64, 4, Int64s({5, 7, 0, 0}), 2), key);
  EXPECT_NE(PaddedKey(DT_INT64, 4, Int64s({5, 6, 0, 0}), 3), key);
  EXPECT_EQ(PaddedKey(DT_STRING, 1, Strings({"a"}), 1),
            PaddedKey(DT_STRING, 3, Strings({"a", "", ""}), 1));
  EXPECT_EQ(PaddedKey(DT_INT64, 0, "", 0), PaddedKey(DT_INT64, 1, Int64s({7}), 0));
}

TEST(RowKeys, PaddedRowsRemainReadable) {
  const std::string message = MessageOf({Tensor(DT_INT64, {2, 2}, Int64s({5, 6, 7, 8}))});
  KeysWith(2, Bytes(message), [](const Column& column, RowKeys* keys) {
    const std::vector<int64_t> lengths = {1, 2};
    ASSERT_TRUE(keys->AddRows(column, 4, lengths.data()).ok());
    EXPECT_EQ(reinterpret_cast<const int64_t*>(keys->at(0, 1))[1], 8);
  });
}

TEST(RowKeys, AShortListRepeatsItsLastValue) {
  const auto keys = KeysOf(3, {Tensor(DT_STRING, {3}, Strings({"a", "b"}))});
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_EQ(keys[1], keys[2]);
  const auto floats = KeysOf(3, {Tensor(DT_FLOAT, {3}, Floats({1, 2}))});
  EXPECT_NE(floats[0], floats[1]);
  EXPECT_EQ(floats[1], floats[2]);
  const auto empty = KeysOf(2, {Tensor(DT_STRING, {2}, "")});
  EXPECT_EQ(empty[0], KeysOf(1, {Tensor(DT_STRING, {1}, Strings({""}))})[0]);
}

TEST(RowKeys, KeysOfLongStringsDiffer) {
  const std::string prefix(100, 'x');
  const auto keys =
      KeysOf(3, {Tensor(DT_STRING, {3}, Strings({prefix + "a", prefix + "b", prefix + "a"}))});
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_EQ(keys[0], keys[2]);
}

// If only the elements were hashed, each of these pairs of rows would have the same key.
TEST(RowKeys, KeysCoverDtypesShapesAndColumnBoundaries) {
  const auto key = KeysOf(1, {Tensor(DT_FLOAT, {1, 2}, Floats({1, 2}))})[0];
  EXPECT_NE(key, KeysOf(1, {Tensor(DT_FLOAT, {1, 2, 1}, Floats({1, 2}))})[0]);
  EXPECT_NE(key,
            KeysOf(1, {Tensor(DT_FLOAT, {1}, Floats({1})), Tensor(DT_FLOAT, {1}, Floats({2}))})[0]);
  EXPECT_NE(KeysOf(1, {Tensor(DT_INT64, {1}, Int64s({0}))})[0],
            KeysOf(1, {Tensor(DT_DOUBLE, {1}, "")})[0]);
  EXPECT_NE(KeysOf(1, {Tensor(DT_STRING, {1, 2}, Strings({"ab", "c"}))})[0],
            KeysOf(1, {Tensor(DT_STRING, {1, 2}, Strings({"a", "bc"}))})[0]);
  EXPECT_NE(KeysOf(1, {Tensor(DT_STRING, {1}, Strings({"a"}))})[0],
            KeysOf(1, {Tensor(DT_STRING, {1}, Strings({std::string("a\0", 2)}))})[0]);
}

TEST(RowKeys, KeysDoNotDependOnThePreviousRequest) {
  RowKeys row_keys;
  const auto key_of = [&row_keys](const std::string& values) {
    const std::string message =
        BytesField(2, BytesField(1, "a") + BytesField(2, Tensor(DT_STRING, {1}, values)));
    DecodedRequest request;
    EXPECT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
    row_keys.Begin(1, kHash);
    EXPECT_TRUE(row_keys.AddRows(request.columns()[0], 1).ok());
    std::vector<Key> keys;
    row_keys.Finish(&keys);
    return keys[0];
  };
  const Key empty = key_of("");
  EXPECT_NE(key_of(Strings({"a"})), empty);
  EXPECT_EQ(key_of(""), empty);
}

// The strings have separate buffers, as in REST and joined requests.
TEST(RowKeys, KeysCoverSharedStringsInSeveralSlices) {
  const auto key_with = [](const std::vector<std::string>& values) {
    Column shared;
    shared.dtype = DT_STRING;
    shared.dims = {2};
    for (const std::string& value : values) shared.values.AddString(Bytes(value));
    RowKeys row_keys;
    row_keys.Begin(1, kHash);
    row_keys.AddShared(shared);
    std::vector<Key> keys;
    row_keys.Finish(&keys);
    return keys[0];
  };
  const Key key = key_with({"ab", "c"});
  EXPECT_EQ(key, key_with({"ab", "c"}));
  EXPECT_NE(key, key_with({"ab", "d"}));
  EXPECT_NE(key, key_with({"a", "bc"}));
  EXPECT_NE(key, key_with({"ab"}));
}

TEST(RowKeys, KeysAreCorrectAcrossBlocks) {
  std::vector<uint64_t> numbers;
  std::vector<std::string> names;
  for (uint64_t i = 0; i < 2000; ++i) {
    numbers.push_back(i);
    names.push_back("item " + std::to_string(i));
  }
  const std::string message = MessageOf(
      {Tensor(DT_INT64, {2000}, Int64s(numbers)), Tensor(DT_STRING, {2000}, Strings(names))});
  const std::vector<Key> keys = KeysWith(2000, Bytes(message), AddRows);
  EXPECT_EQ(keys[1234], KeysOf(1, {Tensor(DT_INT64, {1}, Int64s({1234})),
                                   Tensor(DT_STRING, {1}, Strings({"item 1234"}))})[0]);
}

}  // namespace
}  // namespace colcast::states
