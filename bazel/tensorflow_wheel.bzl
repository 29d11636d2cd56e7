"""Stand-ins for upstream's repositories, made from an installed TensorFlow wheel.

The wheel contains the headers of TensorFlow, abseil and protobuf, and libraries with the code of
all three. Each rule provides one of them, with the upstream labels that tf_patches/ and
serving_patches/ use. Other labels do not resolve.
"""

_BUILD_HEAD = """package(default_visibility = ["//visibility:public"])

"""

_FIND_WHEEL = """
import importlib.metadata, importlib.util
print(importlib.metadata.version("tensorflow-cpu"))
print(importlib.util.find_spec("tensorflow").submodule_search_locations[0])
"""

def _find_wheel(context):
    """Returns the folder of the installed wheel; fails if its version is not the expected one.

    Uses the Python at $COLCAST_PYTHON, by default the main repository's .venv.
    """
    python = context.os.environ.get("COLCAST_PYTHON") or str(
        context.path(context.attr.workspace).dirname.get_child(".venv").get_child("bin").get_child("python"),
    )
    found = context.execute([python, "-c", _FIND_WHEEL])
    if found.return_code != 0:
        fail("%s has no tensorflow-cpu (`make setup` installs it into .venv; COLCAST_PYTHON names another Python): %s" %
             (python, found.stderr.strip().split("\n")[-1]))
    version, folder = found.stdout.strip().split("\n")
    if version != context.attr.version:
        fail("%s: wanted tensorflow-cpu %s, found %s" % (python, context.attr.version, version))
    return context.path(folder)

def _add_package(context, package, targets):
    """Writes a package of libraries: name -> attributes of its cc_library, as text."""
    rules = ["cc_library(\n    name = \"%s\",\n%s)\n" % (name, attributes) for name, attributes in targets.items()]
    context.file(package + "/BUILD" if package else "BUILD", _BUILD_HEAD + "\n".join(rules))

def _deps(*labels):
    return "    deps = [%s],\n" % ", ".join(["\"%s\"" % label for label in labels])

def _headers(patterns, exclude = []):
    return "    hdrs = glob(%r, exclude = %r),\n    includes = [\"include\"],\n" % (patterns, exclude)

# Headers that TensorFlow's own headers include.
_ALL_HEADERS = ["include/%s/**" % name for name in ("Eigen", "absl", "google", "ml_dtypes", "tensorflow", "tsl", "unsupported", "xla")]

def _org_tensorflow_impl(context):
    wheel = _find_wheel(context)
    context.symlink(wheel.get_child("include"), "include")
    libraries = ["libtensorflow_cc.so.2", "libtensorflow_framework.so.2"]
    for library in libraries:
        context.symlink(wheel.get_child(library), library)
    context.file("WORKSPACE", "workspace(name = \"org_tensorflow\")\n")

    # tensorflow/cc is a separate package upstream: only targets that depend on it may include it.
    _add_package(context, "", {
        "wheel": _headers(_ALL_HEADERS, exclude = ["include/tensorflow/cc/**"]) +
                 "    srcs = %r,\n" % libraries +
                 # The wheel's own alignment: another one would change the layout of Eigen's objects.
                 "    defines = [\"EIGEN_MAX_ALIGN_BYTES=64\"],\n",
        "saved_model_util": _headers(["include/tensorflow/cc/saved_model/util.h"]) + _deps(":wheel"),
    })
    _add_package(context, "tensorflow/core", {
        name: _deps("//:wheel")
        for name in ("framework", "lib", "protos_all_cc")
    })
    _add_package(context, "tensorflow/cc/saved_model", {"util": _deps("//:saved_model_util")})
    for patch in context.attr.patches:
        context.patch(patch, strip = 1)

org_tensorflow = repository_rule(
    implementation = _org_tensorflow_impl,
    doc = "@org_tensorflow: TensorFlow's headers and libraries from the installed wheel.",
    attrs = {
        "patches": attr.label_list(doc = "Applied to the repository as TF Serving applies them."),
        "version": attr.string(mandatory = True, doc = "The wheel's version; another one is refused."),
        "workspace": attr.label(default = "@//:WORKSPACE", doc = "A file beside .venv."),
    },
    environ = ["COLCAST_PYTHON"],
    local = True,
)

def _com_google_absl_impl(context):
    context.file("WORKSPACE", "workspace(name = \"com_google_absl\")\n")
    for package, names in {
        "absl/container": ["flat_hash_map", "inlined_vector"],
        "absl/functional": ["function_ref"],
        "absl/status": ["status", "statusor"],
        "absl/strings": ["strings"],
        "absl/types": ["span"],
    }.items():
        _add_package(context, package, {name: _deps("@org_tensorflow//:wheel") for name in names})

com_google_absl = repository_rule(
    implementation = _com_google_absl_impl,
    doc = "@com_google_absl: the abseil inside the wheel.",
)

def _com_google_protobuf_impl(context):
    context.file("WORKSPACE", "workspace(name = \"com_google_protobuf\")\n")
    _add_package(context, "", {"protobuf": _deps("@org_tensorflow//:wheel")})

com_google_protobuf = repository_rule(
    implementation = _com_google_protobuf_impl,
    doc = "@com_google_protobuf: the protobuf inside the wheel.",
)
