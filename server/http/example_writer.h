// One tf.Example, serialized as its JSON is read. For example_json.cc only.
#ifndef COLCAST_SERVER_HTTP_EXAMPLE_WRITER_H_
#define COLCAST_SERVER_HTTP_EXAMPLE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/http/json_value.h"
#include "server/http1/request_memory.h"
#include "server/wire/name_table.h"

namespace colcast::http {

class ExampleWriter {
 public:
  explicit ExampleWriter(RequestMemory* memory) : memory_(memory) {}
  ~ExampleWriter() {
    if (memory_ != nullptr) memory_->Return(counted_);
  }
  ExampleWriter(const ExampleWriter&) = delete;

  void Begin();
  // INVALID_ARGUMENT, as the rest of a sentence, for a name that is not UTF-8 or comes twice.
  Status BeginFeature(std::string_view name);
  // The same for a value that is of no kind, or of another one than those before. The culprit is
  // to be named in front.
  Status Add(const JsonValue& value);
  void EndFeature();
  // The Example, good until the next one.
  const std::string& End();

  std::string_view feature() const { return names_.back(); }

 private:
  // tensorflow.Feature's fields: each is a list with its values in field 1.
  enum class Kind : uint32_t { kNotSet = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

  static Kind KindOf(const JsonValue& value);
  Status AddFloat(double wide);
  Status AddInt64(const JsonValue& value);
  Status AddBytes(const JsonValue& value);
  void AppendBytes(std::string_view value);
  void Count();

  RequestMemory* const memory_;
  size_t counted_ = 0;
  std::string bytes_;  // what there is; headers are put in front of what has ended
  size_t begin_ = 0;   // of the feature in it
  Kind kind_ = Kind::kNotSet;
  NameTable table_;
  std::deque<std::string> names_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_EXAMPLE_WRITER_H_
