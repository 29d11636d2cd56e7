#include "server/wire/example_request.h"

#include <cstddef>
#include <cstdint>

#include "server/wire/reader.h"

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

// Separates the examples from a message that CheckMessage() accepted, so no read can fail.
class Splitter {
 public:
  Splitter(int64_t max_examples, ExampleRequest* request)
      : max_examples_(static_cast<size_t>(max_examples)), request_(request) {}

  // Returns false if there are too many examples.
  bool Split(Reader message) {
    while (!message.done()) {
      const Bytes from_here = message.Rest();
      uint32_t tag;
      message.ReadTag(&tag);
      if (tag == kInputTag) {
        Reader input;
        message.ReadNested(&input);
        if (!MergeInput(input)) return false;
      } else {
        message.SkipValue(tag, kMaxDepth);
        Append(from_here.Sub(0, from_here.size() - message.Rest().size()), &request_->rest);
      }
    }
    return true;
  }

 private:
  bool MergeInput(Reader input) {
    while (!input.done()) {
      uint32_t tag;
      input.ReadTag(&tag);
      if (tag != kExampleListTag && tag != kExampleListWithContextTag) {
        input.SkipValue(tag, kMaxDepth);
        continue;
      }
      if (tag != list_tag_) request_->input = ExampleInput();
      list_tag_ = tag;
      Reader list;
      input.ReadNested(&list);
      if (!MergeList(list)) return false;
    }
    return true;
  }

  bool MergeList(Reader list) {
    while (!list.done()) {
      uint32_t tag;
      list.ReadTag(&tag);
      Bytes body;
      if (tag == kExamplesTag) {
        if (request_->input.examples.size() == max_examples_) return false;
        list.ReadBytes(&body);
        request_->input.examples.push_back(body);
      } else if (tag == kContextTag && list_tag_ == kExampleListWithContextTag) {
        list.ReadBytes(&body);
        Append(body, &request_->input.context);
      } else {
        list.SkipValue(tag, kMaxDepth);
      }
    }
    return true;
  }

  const size_t max_examples_;
  ExampleRequest* const request_;
  uint32_t list_tag_ = 0;  // tag of the list read so far; a list of the other kind replaces it
};

}  // namespace

Status DecodeExampleRequest(const Bytes& message, const MessageSchema& schema, const char* name,
                            int64_t max_examples, ExampleRequest* request) {
  Malformed malformed;
  if (!CheckMessage(Reader(message), schema, kMaxDepth, &malformed)) {
    return MalformedError(name, malformed, message.size());
  }
  *request = ExampleRequest();
  if (Splitter(max_examples, request).Split(Reader(message))) return OkStatus();
  return ResourceExhausted("the ", name, " has more than ", max_examples,
                           " examples, which is max_request_rows");
}

}  // namespace colcast
