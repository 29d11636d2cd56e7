// Compares server/wire/example_request.h with protobuf on randomly damaged messages. Both must give
// the same verdict (except about examples, which only the model's parser checks) and the same
// contents.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/wire/example_request.h"
#include "server/wire/fuzz_testing.h"
#include "server/wire/reader.h"
#include "tensorflow_serving/apis/classification.pb.h"

namespace colcast {
namespace {

using tensorflow::Example;
using tensorflow::serving::ClassificationRequest;

std::string Hex(const std::string& message) {
  std::string digits;
  for (const unsigned char byte : message) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

Example MakeExample(std::mt19937* random) {
  Example example;
  for (int i = (*random)() % 3; i > 0; --i) {
    tensorflow::Feature& feature =
        (*example.mutable_features()->mutable_feature())[std::string(1, 'a' + i)];
    switch ((*random)() % 3) {
      case 0:
        feature.mutable_bytes_list()->add_value("v");
        break;
      case 1:
        feature.mutable_float_list()->add_value(1.5f);
        break;
      default:
        feature.mutable_int64_list()->add_value(300);
    }
  }
  return example;
}

std::string MakeMessage(std::mt19937* random) {
  ClassificationRequest request;
  request.mutable_model_spec()->set_name("m");
  if ((*random)() % 2 == 0) request.mutable_model_spec()->set_version_label("stable");
  const int examples = (*random)() % 3;
  if ((*random)() % 2 == 0) {
    for (int i = 0; i < examples; ++i) {
      *request.mutable_input()->mutable_example_list()->add_examples() = MakeExample(random);
    }
  } else {
    auto* const list = request.mutable_input()->mutable_example_list_with_context();
    *list->mutable_context() = MakeExample(random);
    for (int i = 0; i < examples; ++i) *list->add_examples() = MakeExample(random);
  }
  return request.SerializeAsString();
}

// Replaces, flips, drops or adds up to three bytes. Sometimes appends a second message, which
// protobuf merges.
std::string Damage(std::string message, std::mt19937* random) {
  if ((*random)() % 3 == 0) message += MakeMessage(random);
  for (int i = (*random)() % 4; i > 0 && !message.empty(); --i) {
    const size_t at = (*random)() % message.size();
    switch ((*random)() % 4) {
      case 0:
        message[at] = static_cast<char>((*random)());
        break;
      case 1:
        message[at] ^= 1 << (*random)() % 8;
        break;
      case 2:
        message.erase(at, 1);
        break;
      default:
        message.insert(at, 1, static_cast<char>((*random)() % 32));
    }
  }
  return message;
}

// Bytes that are equal for equal messages, even with NaNs.
std::string Canonical(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// Converts the decoded input to the message that protobuf would hold. Returns false if an example
// does not parse.
bool ToProto(const ExampleInput& input, std::vector<Example>* examples, Example* context) {
  for (const Bytes& bytes : input.examples) {
    if (!examples->emplace_back().ParseFromString(bytes.ToString())) return false;
  }
  return context->ParseFromString(input.context);
}

// Whether protobuf parses what server/wire leaves to it: the examples and all fields but the input.
bool Parses(const ExampleRequest& request) {
  std::vector<Example> examples;
  Example context;
  return ToProto(request.input, &examples, &context) &&
         ClassificationRequest().ParseFromString(request.rest);
}

void ExpectSameContents(const ExampleRequest& decoded, const ClassificationRequest& expected) {
  std::vector<Example> examples;
  Example context;
  ASSERT_TRUE(ToProto(decoded.input, &examples, &context));
  const auto& input = expected.input();
  const auto& wanted = input.has_example_list_with_context()
                           ? input.example_list_with_context().examples()
                           : input.example_list().examples();
  ASSERT_EQ(static_cast<int>(examples.size()), wanted.size());
  for (int i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(Canonical(examples[i]), Canonical(wanted[i]));
  }
  EXPECT_EQ(Canonical(context), Canonical(input.example_list_with_context().context()));
  ClassificationRequest rest;
  ClassificationRequest without_input = expected;
  without_input.clear_input();
  ASSERT_TRUE(rest.ParseFromString(decoded.rest));
  EXPECT_EQ(Canonical(rest), Canonical(without_input));
}

// Whether the input has both kinds of example list. Protobuf then drops the first list but still
// checks it; server/wire does not.
bool HasBothLists(const Bytes& message) {
  std::set<uint32_t> tags;
  Reader reader(message);
  uint32_t tag;
  while (!reader.done() && reader.ReadTag(&tag)) {
    Reader input;
    if (tag != MakeTag(2, kLengthType)) {
      reader.SkipValue(tag);
    } else if (reader.ReadNested(&input)) {
      while (!input.done() && input.ReadTag(&tag) && input.SkipValue(tag)) {
        tags.insert(tag);
      }
    }
  }
  return tags.count(MakeTag(1, kLengthType)) + tags.count(MakeTag(2, kLengthType)) == 2;
}

TEST(ExampleRequestProtobufTest, AgreesWithProtobufOnDamagedMessages) {
  google::protobuf::LogSilencer no_word_about_utf8;
  std::mt19937 random(7);
  int accepted = 0;
  constexpr int kRuns = 100'000;
  for (int run = 0; run < kRuns && !::testing::Test::HasFailure(); ++run) {
    const std::string message = Damage(MakeMessage(&random), &random);
    SCOPED_TRACE(Hex(message));
    ExampleRequest decoded;
    const fuzz::Slices slices(message, static_cast<uint8_t>(run));
    const Status status = DecodeExampleRequest(slices.bytes(), "R", 1000, &decoded);
    ClassificationRequest expected;
    if (expected.ParseFromString(message)) {
      ASSERT_TRUE(status.ok()) << status.message;
      ExpectSameContents(decoded, expected);
      ++accepted;
    } else if (status.ok() && !HasBothLists(Bytes(message))) {
      EXPECT_FALSE(Parses(decoded)) << "protobuf refuses the message";
    }
  }
  EXPECT_GT(accepted, kRuns / 10);
  EXPECT_LT(accepted, kRuns * 9 / 10);
}

}  // namespace
}  // namespace colcast
