"""Writes the protos of all services, with everything they import, as one FileDescriptorSet.

The wheels of TF Serving's API and of gRPC's health check contain generated Python code instead of
.proto files. The descriptors in that code are complete, and protoc reads them with
--descriptor_set_in.

Usage: collect_descriptors.py OUTPUT    (prints the set's file names, dependencies first)
"""

import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from google.protobuf import descriptor, descriptor_pb2
from grpc_health.v1 import health_pb2
from tensorflow_serving.apis import (
    model_service_pb2,
    prediction_log_pb2,
    prediction_service_pb2,
)

_ROOTS = (
    prediction_service_pb2,
    model_service_pb2,
    prediction_log_pb2,
    health_pb2,
)


def collect(roots: tuple[descriptor.FileDescriptor, ...]) -> descriptor_pb2.FileDescriptorSet:
    """Returns the roots and their transitive imports, each file after its imports."""
    found: dict[str, descriptor.FileDescriptor] = {}

    def visit(file: descriptor.FileDescriptor) -> None:
        if file.name in found:
            return
        for dependency in file.dependencies:
            visit(dependency)
        found[file.name] = file

    for root in roots:
        visit(root)
    result = descriptor_pb2.FileDescriptorSet()
    for file in found.values():
        file.CopyToProto(result.file.add())
    return result


def main() -> None:
    """Writes the set to the path in argv[1]."""
    files = collect(tuple(root.DESCRIPTOR for root in _ROOTS))
    output, content = Path(sys.argv[1]), files.SerializeToString(deterministic=True)
    if not output.exists() or output.read_bytes() != content:  # avoids a needless rebuild
        output.write_bytes(content)
    print(";".join(file.name for file in files.file), end="")


if __name__ == "__main__":
    main()
