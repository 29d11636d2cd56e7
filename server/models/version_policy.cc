#include "server/models/version_policy.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace colcast::models {

bool VersionPolicy::operator==(const VersionPolicy& other) const {
  return std::tie(kind, num_versions, versions) ==
         std::tie(other.kind, other.num_versions, other.versions);
}

std::vector<VersionDirectory> SelectVersions(const VersionPolicy& policy,
                                             const std::vector<VersionDirectory>& on_disk) {
  switch (policy.kind) {
    case VersionPolicy::Kind::kAll:
      return on_disk;
    case VersionPolicy::Kind::kLatest: {
      const size_t count = std::min<size_t>(policy.num_versions, on_disk.size());
      return {on_disk.end() - static_cast<std::ptrdiff_t>(count), on_disk.end()};
    }
    case VersionPolicy::Kind::kSpecific:
      break;
  }
  std::vector<VersionDirectory> selected;
  std::copy_if(on_disk.begin(), on_disk.end(), std::back_inserter(selected),
               [&](const VersionDirectory& directory) {
                 return std::binary_search(policy.versions.begin(), policy.versions.end(),
                                           directory.version);
               });
  return selected;
}

std::vector<int64_t> MissingVersions(const VersionPolicy& policy,
                                     const std::vector<VersionDirectory>& on_disk) {
  std::vector<int64_t> missing;
  for (const int64_t version : policy.versions) {
    const bool found = std::any_of(
        on_disk.begin(), on_disk.end(),
        [&](const VersionDirectory& directory) { return directory.version == version; });
    if (!found) missing.push_back(version);
  }
  return missing;
}

}  // namespace colcast::models
