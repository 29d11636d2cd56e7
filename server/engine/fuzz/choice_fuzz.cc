// libFuzzer target: any choice file is either read completely or refused.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/engine/rewrites/rewrite_choices.h"

namespace {

void Check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) { return 0; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using colcast::StatusCode;
  const std::string text(reinterpret_cast<const char*>(data), size);
  colcast::engine::ChoiceFile choice;
  const colcast::Status status = colcast::engine::ParseChoice("choice.json", text, "this", &choice);
  if (status.ok()) {
    Check(choice.path == "choice.json" && text.find("this") != std::string::npos);
  } else {
    Check(status.code == StatusCode::kInvalidArgument || status.code == StatusCode::kNotFound);
    Check(status.message.rfind("choice.json", 0) == 0);
    Check(choice.path.empty() && choice.rewrites.empty() && choice.signatures.empty());
  }
  return 0;
}
