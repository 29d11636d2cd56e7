"""A miniature of TF Serving: its file names, with stand-in lines around the hooks.

Bazel can build it: upstream's targets come from the TensorFlow wheel, or are a few lines here.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PREDICT_UTIL = "tensorflow_serving/servables/tensorflow/predict_util.cc"
BUILD = "tensorflow_serving/servables/tensorflow/BUILD"
TENSORFLOW_PATCH = "third_party/tensorflow/tensorflow.patch"
TENSORFLOW_COMMIT = "72fbba3d20f4616d7312b5e2b7f79daf6e82f2fa"

CALL = "      saved_model::GetInputValues(signature, request.inputs(), *inputs));"
INCLUDE = '#include "tensorflow_serving/servables/tensorflow/predict_util.h"'

WORKSPACE = """workspace(name = "tf_serving")

local_repository(
    name = "colcast",
    path = "{root}",
)

load("//tensorflow_serving:repo.bzl", "tensorflow_http_archive")
load("@colcast//bazel:tensorflow_wheel.bzl", "com_google_absl", "com_google_protobuf")

tensorflow_http_archive(
    name = "org_tensorflow",
    git_commit = "{commit}",
    patch = "//third_party/tensorflow:tensorflow.patch",
)

com_google_absl(name = "com_google_absl")

com_google_protobuf(name = "com_google_protobuf")

new_local_repository(
    name = "com_google_googletest",
    build_file = "@colcast//bazel:googletest.BUILD",
    path = "/usr/src/googletest",
)
"""

# TensorFlow from the wheel, patched by upstream's attribute.
REPO_BZL = """load("@colcast//bazel:tensorflow_wheel.bzl", "org_tensorflow")

def tensorflow_http_archive(name, git_commit, patch):
    org_tensorflow(
        name = name,
        version = "2.20.0",
        patches = [patch],
    )
"""

# Upstream's visibility: packages inside see everything; public targets are marked.
INTERNAL = """package_group(
    name = "internal",
    packages = ["//tensorflow_serving/..."],
)
"""

APIS_BUILD = """cc_library(
    name = "predict_cc_proto",
    hdrs = ["predict.pb.h"],
    visibility = ["//visibility:public"],
    deps = ["@org_tensorflow//tensorflow/core:protos_all_cc"],
)
"""

# The methods of the message that the hook and its test use.
PREDICT_PB_H = """#pragma once
#include <string>

#include "google/protobuf/map.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace tensorflow::serving {

class PredictRequest {
 public:
  using Inputs = google::protobuf::Map<std::string, tensorflow::TensorProto>;
  const Inputs& inputs() const { return inputs_; }
  Inputs* mutable_inputs() { return &inputs_; }

 private:
  Inputs inputs_;
};

}  // namespace tensorflow::serving
"""

PREDICT_UTIL_H = """#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace tensorflow::serving::internal {

absl::Status PreProcessPrediction(const SignatureDef& signature, const PredictRequest& request,
                                  std::vector<std::pair<std::string, Tensor>>* inputs,
                                  std::vector<std::string>* output_tensor_names,
                                  std::vector<std::string>* output_tensor_aliases);

}  // namespace tensorflow::serving::internal
"""

PREDICT_UTIL_LINES = {
    16: INCLUDE,
    18: '#include "tensorflow/cc/saved_model/util.h"',
    19: '#include "tensorflow/core/platform/errors.h"',
    118: "namespace tensorflow::serving::internal {",
    120: "absl::Status PreProcessPrediction(const SignatureDef& signature,",
    121: "                                  const PredictRequest& request,",
    122: "                                  std::vector<std::pair<std::string, Tensor>>* inputs,",
    123: "                                  std::vector<std::string>*,",
    124: "                                  std::vector<std::string>*) {",
    126: "  TF_RETURN_IF_ERROR(",
    127: CALL,
    128: "  return absl::OkStatus();",
    129: "}",
    131: "}  // namespace tensorflow::serving::internal",
}

BUILD_LINES = {
    1: 'package(default_visibility = ["//tensorflow_serving:internal"])',
    398: "cc_library(",
    399: '    name = "util",',
    400: "    deps = [",  # another rule's deps
    401: "    ],",
    402: ")",
    518: "cc_library(",
    519: '    name = "predict_util",',
    520: '    srcs = ["predict_util.cc"],',
    521: '    hdrs = ["predict_util.h"],',
    522: "    visibility = [",
    523: '        "//visibility:public",',
    524: "    ],",
    525: "    deps = [",
    526: '        ":util",',
    527: '        "//tensorflow_serving/apis:predict_cc_proto",',
    528: '        "@org_tensorflow//tensorflow/cc/saved_model:util",',
    529: '        "@org_tensorflow//tensorflow/core:framework",',
    530: "    ],",
    531: ")",
    540: "cc_library(",
    541: '    name = "yet_another",',
    542: "    deps = [",
    543: "    ],",
    544: ")",
}


def filled(lines: dict[int, str], total: int, comment: str) -> str:
    """A file of `total` lines with `lines` at their numbers and comments elsewhere."""
    return "".join(f"{lines.get(n, f'{comment} stand-in {n}')}\n" for n in range(1, total + 1))


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def make(root: Path) -> Path:
    """Writes the tree."""
    write(root, "WORKSPACE", WORKSPACE.format(root=ROOT, commit=TENSORFLOW_COMMIT))
    write(root, ".bazelrc", f"import {ROOT}/.bazelrc\n")
    write(root, PREDICT_UTIL, filled(PREDICT_UTIL_LINES, 200, "//"))
    write(root, BUILD, filled(BUILD_LINES, 600, "#"))
    write(root, PREDICT_UTIL.replace(".cc", ".h"), PREDICT_UTIL_H)
    write(root, "tensorflow_serving/BUILD", INTERNAL)
    write(root, "tensorflow_serving/repo.bzl", REPO_BZL)
    write(root, "tensorflow_serving/apis/BUILD", APIS_BUILD)
    write(root, "tensorflow_serving/apis/predict.pb.h", PREDICT_PB_H)
    write(root, "third_party/tensorflow/BUILD", "")
    write(
        root,
        TENSORFLOW_PATCH,
        "diff --git a/stand_in b/stand_in\nnew file mode 100644\n--- /dev/null\n+++ b/stand_in\n"
        "@@ -0,0 +1,1 @@\n+upstream's own\n",
    )
    return root


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    return subprocess.run(
        ["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(root: Path) -> str:
    """Makes the tree a repository of one commit, and returns it."""
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=upstream")
    return git(root, "rev-parse", "HEAD")
