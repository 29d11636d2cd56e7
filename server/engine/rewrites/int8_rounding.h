// A row of floats rounded to bytes, for products of int8.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_INT8_ROUNDING_H_
#define COLCAST_SERVER_ENGINE_REWRITES_INT8_ROUNDING_H_

#include <cstdint>

namespace colcast::engine {

// How a row was rounded: a value is step * (rounded - zero), and 0 stays 0.
struct Rounding {
  float step;
  int32_t zero;
};

// Values behind the end of a row that rounding writes, too.
inline constexpr int64_t kRoundingSlack = 16;

// Rounds `depth` values to 0 ... 255. Returns false for a row that is better not rounded: one with
// NaN, infinity or a step too small for an inverse, and one of whose values, without zeros, half or
// more are below 12.5 steps, which rounding moves by more than 2 % on average. For CPUs that
// HasInt8Products.
bool RoundRow(const float* row, int64_t depth, Rounding* rounding, uint8_t* rounded);

// Rounds `depth` weights, one every `stride` floats, to step * (-127 ... 127). Returns false as
// RoundRow does.
bool RoundWeights(const float* weights, int64_t depth, int64_t stride, float* step,
                  int8_t* rounded);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_INT8_ROUNDING_H_
