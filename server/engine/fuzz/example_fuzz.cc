// libFuzzer target: ExampleDecoder must read from tf.Examples what TensorFlow's parser reads, and
// must refuse what the parser refuses. It may refuse more.
//
// The first byte chooses the features to parse, the second how to slice the examples; the remaining
// bytes decide what BuildExamples() writes.
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/fuzz/message_builder.h"
#include "server/engine/fuzz/oracle.h"
#include "server/wire/column.h"
#include "server/wire/example_decoder.h"
#include "server/wire/fuzz_testing.h"

namespace colcast::fuzz {
namespace {

std::string Bits(int64_t value, size_t size) {
  return std::string(reinterpret_cast<const char*>(&value), size);
}

// Feature i holds strings, floats or int64s, in turn, as in BuildExamples().
std::vector<ExampleFeature> AllFeatures() {
  constexpr std::array<DataType, 3> kDtypes = {DT_STRING, DT_FLOAT, DT_INT64};
  const struct {
    FeatureKind kind;
    std::vector<int64_t> shape;
    int defaults;
    std::array<const char*, 3> names;
  } kKinds[] = {{FeatureKind::kFixedLen, {}, 0, {"a", "bb", "c"}},
                {FeatureKind::kFixedLen, {2}, 2, {"d", "ee", "f"}},
                {FeatureKind::kVarLen, {}, 0, {"g", "h", "i"}},
                {FeatureKind::kFixedLenSequence, {}, 1, {"j", "k", "l"}},
                {FeatureKind::kFixedLenSequence, {2}, 1, {"m", "n", "o"}},
                {FeatureKind::kRagged, {}, 0, {"p", "q", "r"}}};
  std::vector<ExampleFeature> features;
  for (const auto& kind : kKinds) {
    for (size_t i = 0; i < kDtypes.size(); ++i) {
      ExampleFeature& feature = features.emplace_back();
      feature.name = kind.names[i];
      feature.kind = kind.kind;
      feature.dtype = kDtypes[i];
      feature.shape = kind.shape;
      feature.required = kind.kind == FeatureKind::kFixedLen && kind.defaults == 0;
      for (int value = 0; value < kind.defaults; ++value) {
        feature.default_values +=
            i == 0 ? StringRecord(value == 0 ? "x" : "y") : Bits(0x3f00 + value, i == 1 ? 4 : 8);
      }
    }
  }
  return features;
}

// The features to parse, in the form that each implementation needs.
struct Parse {
  std::vector<std::string> names;
  std::unique_ptr<const ExampleFeatures> features;
  std::unique_ptr<ExampleOracle> oracle;
};

// Bit k of `choice` selects features 3k to 3k + 2. At least one must be selected.
std::unique_ptr<Parse> MakeParse(uint32_t choice) {
  auto parse = std::make_unique<Parse>();
  std::vector<ExampleFeature> kept;
  const std::vector<ExampleFeature> all = AllFeatures();
  for (size_t i = 0; i < all.size(); ++i) {
    parse->names.push_back(all[i].name);
    if ((choice >> i / 3 & 1) != 0) kept.push_back(all[i]);
  }
  parse->oracle = std::make_unique<ExampleOracle>(kept);
  const Status status = ExampleFeatures::Create(std::move(kept), &parse->features);
  CHECK_THAT(status.ok(), status.message);
  return parse;
}

const Parse& ParseOf(uint32_t choice) {
  static auto* const parses = new std::array<std::unique_ptr<Parse>, 64>();
  const uint32_t kept = 1 + choice % 63;
  std::unique_ptr<Parse>& parse = (*parses)[kept];
  if (parse == nullptr) parse = MakeParse(kept);
  return *parse;
}

// A column's values, `row_elements` per row.
struct Rows {
  int64_t rows = 0, row_elements = 0;
  std::string memory;
  std::vector<std::string> strings;
};

Rows ReadColumn(const Column& column, int64_t rows) {
  Rows read;
  int64_t count = 0;
  CHECK_THAT(ElementCount(column, &count).ok() && CheckValues(column, count).ok(),
             std::string(column.name));
  CHECK_THAT(column.dims[0] == rows || column.dims[0] == 1, std::string(column.name));
  read.rows = rows;
  read.row_elements = count / column.dims[0];
  if (column.dtype == DT_STRING) {
    read.strings = StringsOf(column);
  } else {
    read.memory.resize(count * ElementSize(column.dtype));
    CHECK_THAT(CopyValues(column, count, read.memory.data()).ok(), std::string(column.name));
  }
  const std::string memory = read.memory;
  const std::vector<std::string> strings = read.strings;
  for (int64_t row = column.dims[0]; row < rows; ++row) {
    read.memory += memory;
    read.strings.insert(read.strings.end(), strings.begin(), strings.end());
  }
  return read;
}

// Returns the rows without their padding.
Rows Unpadded(const Rows& padded, const std::vector<int64_t>& lengths, size_t element_size) {
  Rows flat;
  for (int64_t row = 0; row < padded.rows; ++row) {
    const int64_t begin = row * padded.row_elements, end = begin + lengths[row];
    if (element_size == 0) {
      flat.strings.insert(flat.strings.end(), padded.strings.begin() + begin,
                          padded.strings.begin() + end);
    } else {
      flat.memory += padded.memory.substr(begin * element_size, lengths[row] * element_size);
    }
  }
  return flat;
}

void Compare(const ExampleFeatures& features, Span<Column> columns, int64_t rows,
             const std::vector<OracleValues>& expected) {
  size_t next = 0;
  for (size_t i = 0; i < features.size(); ++i) {
    const ExampleFeature& feature = features[i].feature;
    const Column& column = columns[next++];
    CHECK_THAT(column.name == feature.name && column.dtype == feature.dtype, feature.name);
    Rows read = ReadColumn(column, rows);
    std::vector<int64_t> dims = column.dims;
    dims[0] = rows;
    if (features[i].length_name.empty()) {
      CHECK_THAT(dims == expected[i].dims, feature.name);
    } else {
      const Column& length = columns[next++];
      CHECK_THAT(length.name == features[i].length_name && length.dtype == DT_INT64, feature.name);
      const std::string memory = ReadColumn(length, rows).memory;
      std::vector<int64_t> lengths(rows);
      CHECK_THAT(memory.size() == lengths.size() * sizeof(int64_t), feature.name);
      std::memcpy(lengths.data(), memory.data(), memory.size());
      CHECK_THAT(lengths == expected[i].lengths, feature.name);
      CHECK_THAT(feature.kind != FeatureKind::kVarLen || dims[1] == expected[i].longest,
                 feature.name);
      read = Unpadded(read, lengths, NumberSize(feature.dtype));
    }
    CHECK_THAT(read.memory == expected[i].memory, feature.name);
    CHECK_THAT(read.strings == expected[i].strings, feature.name);
  }
  CHECK_THAT(next == columns.size(), "columns");
}

void RunOne(const Parse& parse, uint8_t slicing, const std::vector<std::string>& examples) {
  static auto* const decoder = new ExampleDecoder();
  current_messages = examples;
  std::vector<std::unique_ptr<Slices>> slices;
  std::vector<Bytes> views;
  for (const std::string& example : examples) {
    slices.push_back(std::make_unique<Slices>(example, slicing));
    views.push_back(slices.back()->bytes());
  }
  if (!decoder->Decode(*parse.features, views)) return;
  std::vector<OracleValues> expected;
  CHECK_THAT(parse.oracle->Parse(examples, &expected), "TensorFlow refuses the examples");
  Compare(*parse.features, decoder->columns(), static_cast<int64_t>(examples.size()), expected);
}

}  // namespace
}  // namespace colcast::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", 1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const colcast::fuzz::Parse& parse = colcast::fuzz::ParseOf(data[0]);
  // Half of the inputs have one slice per example, as in small requests.
  const uint8_t slicing = data[1] % 2 == 0 ? 0 : data[1];
  colcast::fuzz::Decisions decisions(data + 2, size - 2);
  colcast::fuzz::RunOne(parse, slicing, colcast::fuzz::BuildExamples(parse.names, &decisions));
  return 0;
}
