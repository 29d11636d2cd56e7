// One way to answer requests to a signature.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "server/engine/program/batch.h"
#include "server/engine/signature.h"

namespace colcast::engine {

// Any number of threads may use one at once.
class Program {
 public:
  virtual ~Program() = default;

  // A literal, by which its runs are counted: "whole".
  virtual std::string_view name() const = 0;

  // Whether it can run the batch, from its form and shapes.
  virtual bool Accepts(const Batch& batch) const = 0;

  // Sets the outputs that the batch asks for. False, and nothing is set, where running gains
  // nothing, so that the next program has less work. REQUIRES Accepts().
  virtual absl::StatusOr<bool> Run(const Batch& batch, RunResult* result) = 0;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_PROGRAM_H_
