// What was chosen for a model's signatures, kept in a file for the next time it is loaded.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_KEPT_CHOICES_H_
#define COLCAST_SERVER_ENGINE_REWRITES_KEPT_CHOICES_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace colcast::engine {

struct KeptChoice {
  std::string graph;  // the name of the rewritten graph; empty: the graph as it was saved
  std::string why;
};

// By signature.
using KeptChoices = std::map<std::string, KeptChoice, std::less<>>;

// What tells a model from one with other graphs, values, files of words or recorded requests. Reads
// the variables' index, which has a checksum of each, and not the variables.
std::string ModelFingerprint(const std::string& directory);

// The file in `folder` for a model that runs as `key` says: all that a choice depends on.
std::string ChoicesFile(const std::string& folder, std::string_view key);

// Those in a file that was written for `key`; none if there is no such file, or it cannot be read.
KeptChoices ReadChoices(const std::string& file, std::string_view key);

// Makes the file's folder where need be, but nothing above that. The file is there as a whole or
// not at all. An error says why it cannot be written.
absl::Status WriteChoices(const std::string& file, std::string_view key,
                          const KeptChoices& choices);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_KEPT_CHOICES_H_
