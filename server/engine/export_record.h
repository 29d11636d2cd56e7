// What the exporter recorded in a model's assets.extra/colcast.json, as far as serving depends on
// it.
#ifndef COLCAST_SERVER_ENGINE_EXPORT_RECORD_H_
#define COLCAST_SERVER_ENGINE_EXPORT_RECORD_H_

#include <string>

namespace colcast::engine {

// Whether the pair part of the columnar signature `name` of the model in `directory` takes several
// users in one run. False where nothing says so: one user at a time is never wrong.
bool TakesManyUsersPerRun(const std::string& directory, const std::string& name);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_EXPORT_RECORD_H_
