"""The upstream release that the patches support. To support the next release, start here."""

from __future__ import annotations

from dataclasses import dataclass

from fork.hooks import Hook

SERVABLES = "tensorflow_serving/servables/tensorflow"
_INCLUDE = '#include "tensorflow_serving/servables/tensorflow/predict_util.h"'


@dataclass(frozen=True)
class Release:
    """A release of TF Serving and the TensorFlow version that it pins.

    Attributes:
        version: Its name, for messages.
        serving_url: The default URL for `git`.
        serving_commit: The only commit that the patches support.
        tensorflow_commit: The `git_commit` of `tensorflow_http_archive` in its WORKSPACE.
        tensorflow_patch: The patch file that TF Serving applies to TensorFlow.
        hooks: The changes to TF Serving's lines.
    """

    version: str
    serving_url: str
    serving_commit: str
    tensorflow_commit: str
    tensorflow_patch: str
    hooks: tuple[Hook, ...]


RELEASE = Release(
    version="2.20.0",
    serving_url="https://github.com/tensorflow/serving",
    serving_commit="bc7e9d2b9a419294c4526e293c2df8727b0d3116",
    tensorflow_commit="72fbba3d20f4616d7312b5e2b7f79daf6e82f2fa",
    tensorflow_patch="third_party/tensorflow/tensorflow.patch",
    hooks=(
        Hook(
            what="include",
            path=f"{SERVABLES}/predict_util.cc",
            line=16,
            find=_INCLUDE,
            changed=(_INCLUDE, '#include "serving_patches/expand_inputs.h"'),
        ),
        Hook(
            what="call",
            path=f"{SERVABLES}/predict_util.cc",
            line=127,
            find="      saved_model::GetInputValues(signature, request.inputs(), *inputs));",
            changed=("      colcast::ExpandedInputValues(signature, request.inputs(), *inputs));",),
        ),
        Hook(
            what="dependency",
            path=f"{SERVABLES}/BUILD",
            line=519,
            rule='    name = "predict_util",',
            find="    deps = [",
            changed=("    deps = [", '        "//serving_patches:expand_inputs",'),
        ),
    ),
)
