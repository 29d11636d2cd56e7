// What an operator should know of a model's directories, logged once and not at every look.
#ifndef COLCAST_SERVER_MODELS_REMARKS_H_
#define COLCAST_SERVER_MODELS_REMARKS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/models/model_config.h"
#include "server/models/version_directory.h"

namespace colcast::models {

// A sentence for each thing about `listing`, of the model's base path, that is odd.
std::vector<std::string> Remarks(const ModelConfig& model, const BasePathListing& listing);

class RemarkLog {
 public:
  // Logs those of `sentences` as warnings that were not among the last ones about `subject`.
  void Say(const std::string& subject, const std::vector<std::string>& sentences);

 private:
  std::map<std::string, std::set<std::string>> said_;  // by subject
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_REMARKS_H_
