// Measures reading tf.Examples as columns: 150 features of the user and 60 of each item, int64,
// float and string in turn, sorted by name, as in the `wide` workload.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/wire/example_decoder.h"
#include "server/wire/testing.h"

namespace colcast {
namespace {

constexpr int kUserFeatures = 150;
constexpr int kItemFeatures = 60;

std::string Name(const char* side, int number) {
  const std::string digits = std::to_string(number);
  return side + std::string(3 - digits.size(), '0') + digits;
}

std::string Feature(int number, uint64_t random) {
  switch (number % 3) {
    case 0:
      return BytesField(3, BytesField(1, Varint(random % 1000000)));
    case 1:
      return BytesField(2, BytesField(1, Raw<float>({0.25f * (random % 4096)})));
    default:
      return BytesField(1, BytesField(1, "u" + std::to_string(random % 1000000)));
  }
}

std::string Example(int64_t row) {
  std::string features;
  uint64_t random = row + 1;
  const auto add = [&](const std::string& name, const std::string& feature) {
    features += BytesField(1, BytesField(1, name) + BytesField(2, feature));
  };
  for (int i = 0; i < kItemFeatures; ++i) {
    random = random * 6364136223846793005 + 1442695040888963407;
    add(Name("item_", i), Feature(i, random >> 33));
  }
  for (int i = 0; i < kUserFeatures; ++i) add(Name("user_", i), Feature(i, i * 7919));
  return BytesField(1, features);
}

std::unique_ptr<const ExampleFeatures> Features() {
  std::vector<ExampleFeature> features;
  for (int i = 0; i < kUserFeatures + kItemFeatures; ++i) {
    const bool user = i < kUserFeatures;
    const int number = user ? i : i - kUserFeatures;
    ExampleFeature feature;
    feature.name = Name(user ? "user_" : "item_", number);
    feature.dtype = number % 3 == 0 ? DT_INT64 : number % 3 == 1 ? DT_FLOAT : DT_STRING;
    feature.required = true;
    feature.user = user;
    features.push_back(std::move(feature));
  }
  std::unique_ptr<const ExampleFeatures> result;
  if (!ExampleFeatures::Create(std::move(features), &result).ok()) std::abort();
  return result;
}

void BM_DecodeExamples(benchmark::State& state) {
  const auto features = Features();
  std::string message;
  std::vector<Bytes> examples;
  std::vector<std::pair<size_t, size_t>> places;
  for (int64_t row = 0; row < state.range(0); ++row) {
    const std::string example = Example(row);
    places.emplace_back(message.size(), example.size());
    message += example;
  }
  std::vector<size_t> cuts;
  for (size_t cut = 8192; cut < message.size(); cut += 8192) cuts.push_back(cut);
  const SlicedBytes sliced(message, cuts);  // as gRPC delivers it
  for (const auto& [begin, size] : places) examples.push_back(sliced.bytes().Sub(begin, size));
  ExampleDecoder decoder;
  for (auto _ : state) {
    if (!decoder.Decode(*features, examples)) std::abort();
    benchmark::DoNotOptimize(decoder.columns().data());
  }
  state.SetBytesProcessed(state.iterations() * message.size());
}
BENCHMARK(BM_DecodeExamples)
    ->ArgName("N")
    ->Arg(20)
    ->Arg(100)
    ->Arg(500)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace colcast
