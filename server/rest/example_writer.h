// Serializes one tf.Example while its JSON is read. Used only by example_json.cc.
#ifndef COLCAST_SERVER_REST_EXAMPLE_WRITER_H_
#define COLCAST_SERVER_REST_EXAMPLE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "server/base/status.h"
#include "server/http1/request_memory.h"
#include "server/rest/json_value.h"
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
  // Returns INVALID_ARGUMENT for a name that is not UTF-8 or is repeated. The caller prepends the
  // beginning of the sentence.
  Status BeginFeature(std::string_view name);
  // Returns INVALID_ARGUMENT for a value of an unsupported kind, or of another kind than earlier
  // ones. The caller prepends the culprit's name.
  Status Add(const JsonValue& value);
  void EndFeature();
  // Returns the Example, valid until the next one begins.
  const std::string& End();

  std::string_view feature() const { return names_.back(); }

 private:
  // The fields of tensorflow.Feature; each is a list with its values in field 1.
  enum class Kind : uint32_t { kNotSet = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

  static Kind KindOf(const JsonValue& value);
  Status AddFloat(double wide);
  Status AddInt64(const JsonValue& value);
  Status AddBytes(const JsonValue& value);
  void AppendBytes(std::string_view value);
  void Count();

  RequestMemory* const memory_;
  size_t counted_ = 0;
  std::string bytes_;  // the Example so far; a finished field gets its header inserted in front
  size_t begin_ = 0;   // start of the current feature in bytes_
  Kind kind_ = Kind::kNotSet;
  NameTable table_;
  std::deque<std::string> names_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_EXAMPLE_WRITER_H_
