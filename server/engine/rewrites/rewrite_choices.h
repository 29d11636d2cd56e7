// The choice file that `colcast tune --graphs` writes: which inexact rewrites (those that change
// the last bits of scores) a model may use on which machine.
//
//   {"key": "colcast 0.2.0, TensorFlow 2.20.0, AMD EPYC 9B45, graph 0123456789abcdef",
//    "rewrites": ["bfloat16 products"], "signatures": ["columnar", "columnar_late"]}
#ifndef COLCAST_SERVER_ENGINE_REWRITES_REWRITE_CHOICES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_REWRITE_CHOICES_H_

#include <set>
#include <string>

#include "server/base/status.h"

namespace colcast::engine {

struct ChoiceFile {
  std::string path;
  std::set<std::string> rewrites;
  std::set<std::string> signatures;  // for which the rewrites were proven
};

// Finds the choice for `key` in a file, or in the first matching *.json file of a folder. The error
// says why there is none.
Status FindChoice(const std::string& path, const std::string& key, ChoiceFile* choice);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_REWRITE_CHOICES_H_
