#include "server/wire/example_request.h"

#include <cstddef>
#include <cstdint>

#include "server/wire/reader.h"
#include "server/wire/writer.h"

namespace colcast {
namespace {

constexpr uint32_t kInputTag = MakeTag(2, kLengthType);  // in all three requests
constexpr uint32_t kExampleListTag = MakeTag(1, kLengthType);
constexpr uint32_t kExampleListWithContextTag = MakeTag(2, kLengthType);
constexpr uint32_t kExamplesTag = MakeTag(1, kLengthType);  // in both lists
constexpr uint32_t kContextTag = MakeTag(2, kLengthType);

void Append(const Bytes& bytes, std::string* text) {
  const size_t size = text->size();
  text->resize(size + bytes.size());
  bytes.CopyTo(text->data() + size);
}

class Splitter {
 public:
  Splitter(int64_t max_examples, ExampleRequest* request)
      : max_examples_(static_cast<size_t>(max_examples)), request_(request) {}

  // Returns false if the message is malformed or has too many examples.
  bool Split(Reader message) {
    return ReadFields(&message, [&](uint32_t tag) {
      if (tag == kInputTag) {
        Reader input;
        return message.ReadNested(&input) && MergeInput(input);
      }
      const Bytes value = message.Rest();
      if (!message.SkipValue(tag)) return false;
      AppendVarint(tag, &request_->rest);
      Append(value.Sub(0, value.size() - message.Rest().size()), &request_->rest);
      return true;
    });
  }

 private:
  bool MergeInput(Reader input) {
    return ReadFields(&input, [&](uint32_t tag) {
      if (tag != kExampleListTag && tag != kExampleListWithContextTag) return input.SkipValue(tag);
      if (tag != list_tag_) request_->input = ExampleInput();
      list_tag_ = tag;
      Reader list;
      return input.ReadNested(&list) && MergeList(list);
    });
  }

  bool MergeList(Reader list) {
    return ReadFields(&list, [&](uint32_t tag) {
      if (tag == kExamplesTag) {
        if (request_->input.examples.size() == max_examples_) return false;
        return list.ReadBytes(&request_->input.examples.emplace_back());
      }
      if (tag != kContextTag || list_tag_ != kExampleListWithContextTag) return list.SkipValue(tag);
      Bytes context;
      if (!list.ReadBytes(&context)) return false;
      Append(context, &request_->input.context);
      return true;
    });
  }

  const size_t max_examples_;
  ExampleRequest* const request_;
  uint32_t list_tag_ = 0;  // tag of the list read so far; a list of the other kind replaces it
};

}  // namespace

Status DecodeExampleRequest(const Bytes& message, const char* name, int64_t max_examples,
                            ExampleRequest* request) {
  *request = ExampleRequest();
  Malformed malformed;
  if (Splitter(max_examples, request).Split(Reader(message, &malformed))) return OkStatus();
  if (malformed.found()) return malformed.ToStatus(name, message.size());
  return ResourceExhausted("the ", name, " has more than ", max_examples,
                           " examples, which is max_request_rows");
}

}  // namespace colcast
