// A way to answer requests to a signature.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "server/engine/program/batch.h"
#include "server/engine/signature.h"

namespace colcast::engine {

// Any number of threads may use a program at the same time.
class Program {
 public:
  virtual ~Program() = default;

  // A string literal under which runs are counted, such as "whole".
  virtual std::string_view name() const = 0;

  // Whether the program can run the batch, judged by its form and shapes.
  virtual bool Accepts(const Batch& batch) const = 0;

  // Sets the outputs that the batch asks for. Returns false, without setting them, if this program
  // would do more work than the next one. REQUIRES Accepts().
  virtual absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) = 0;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_H_
