// The signature NAME_exact that the exporter puts beside NAME: equal to the last bit, with the
// user's part of the graph at one row (docs/late.md).
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_EXACT_PROGRAM_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_EXACT_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/planned_request.h"
#include "server/engine/signature.h"

namespace colcast::engine {

class ExactProgram {
 public:
  // Null unless `exact`, called `name`, is one of `signature`: the same inputs, outputs and dtypes.
  // It must outlive the program.
  static std::unique_ptr<ExactProgram> Create(const Signature& signature, const std::string& name,
                                              const Signature& exact);

  const Signature& signature() const { return *exact_; }

  // Whether a request that was received sends once what this takes with one row.
  bool Fits(const PlannedRequest& received) const;

 private:
  // What it takes for an input.
  enum class Takes : uint8_t {
    kAsWhole,  // what the signature does, which is not batched
    kOneRow,
    kRows,
  };

  ExactProgram(const Signature* exact, std::vector<Takes> takes)
      : exact_(exact), takes_(std::move(takes)) {}

  const Signature* const exact_;
  const std::vector<Takes> takes_;  // by input
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_EXACT_PROGRAM_H_
