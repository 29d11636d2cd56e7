"""TF Serving's stubs, and servers that all tests share."""

import re
import subprocess
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess, find_executable
from google.protobuf import text_format
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)
from tensorflow_serving.config import model_server_config_pb2

FAST = (
    "--file_system_poll_wait_seconds=0.05",
    "--max_num_load_retries=0",
    "--load_check=false",
    "--allow_version_labels_for_unavailable_models",
)
_NUMBERS = count(1)


# The flags of servers that tests share; each server is started once.
EVERYTHING = (
    "--num_workers=4",
    "--caller_header=x-colcast-caller",
    "--map_tables_min_bytes=1",
    "--rest_api_enable_cors_support",
)
ONE_WORKER = (
    *("--num_workers=1", "--max_piece_milliseconds=1000", EVERYTHING[1]),
    "--num_request_iterations_for_warmup=4",
)
STATES_OFF = ("--user_state_bytes=0", "--item_state_bytes=0")
NOTHING_KEPT = (
    *("--num_workers=1", *STATES_OFF, "--map_tables=off", "--enable_model_warmup=false"),
)
AS_SAVED = (
    *("--graph_optimization=off", "--tensorflow_inter_op_parallelism=2", EVERYTHING[2]),
    "--enable_serialization_as_tensor_content",
)
WHOLE_AND_ALONE = ("--num_workers=1", "--nojoin_waiting_requests", "--max_piece_milliseconds=1e6")
BATCHING = ("--num_workers=1", "--enable_batching")


def server_flags() -> set[str]:
    """The names of the server's own flags."""
    listed = subprocess.run([find_executable(), "--help"], capture_output=True, text=True).stdout
    return set(re.findall(r"^  --(\w+)=", listed, re.MULTILINE))


def array_of(proto: tensor_pb2.TensorProto) -> np.ndarray:
    """A TensorProto's value as an array, even if strings are in tensor_content."""
    if proto.dtype == tf.string.as_datatype_enum:
        return np.asarray(tf.io.parse_tensor(proto.SerializeToString(), tf.string).numpy(), object)
    return np.asarray(tf.make_ndarray(proto))


class Stubs:
    """TF Serving's stubs on one channel, and short methods that call `model` by default."""

    server: ServerProcess

    def __init__(self, target: str, *, own_connection: bool = False, model: str = "ranker") -> None:
        self.model = model
        # Without this option, channels to one target share a connection.
        options = [("grpc.use_local_subchannel_pool", 1)] if own_connection else []
        self.channel = grpc.insecure_channel(target, options)
        self.prediction = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)

    def request(self, inputs: dict[str, Any], **spec: Any) -> predict_pb2.PredictRequest:
        """A PredictRequest; accepts all values that make_tensor_proto accepts."""
        request = predict_pb2.PredictRequest()
        request.model_spec.name = spec.pop("name", self.model)
        request.model_spec.signature_name = spec.pop("signature_name", "serving_default")
        version = spec.pop("version", None)
        if version is not None:
            request.model_spec.version.value = version
        label = spec.pop("label", None)
        if label is not None:
            request.model_spec.version_label = label
        request.output_filter.extend(spec.pop("output_filter", ()))
        assert not spec
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        return request

    def predict(self, inputs: dict[str, Any], **spec: Any) -> dict[str, Any]:
        """Calls Predict; returns the outputs as arrays, or raises grpc.RpcError."""
        response = self.prediction.Predict(self.request(inputs, **spec), timeout=120)
        return {name: array_of(proto) for name, proto in response.outputs.items()}

    def states(self, name: str = "") -> dict[int, tuple[str, int, str]]:
        """By version: its state, and the code and message of its error."""
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = name or self.model
        response = self.models.GetModelStatus(request, timeout=120)
        return {
            entry.version: (
                get_model_status_pb2.ModelVersionStatus.State.Name(entry.state),
                entry.status.error_code,
                entry.status.error_message,
            )
            for entry in response.model_version_status
        }

    def reload(self, configs: str) -> None:
        """Reloads the server with these models; raises grpc.RpcError."""
        config = text_format.Parse(
            f"model_config_list {{ {configs} }}", model_server_config_pb2.ModelServerConfig()
        )
        request = model_management_pb2.ReloadConfigRequest(config=config)
        self.models.HandleReloadConfigRequest(request, timeout=120)

    def metadata(self, name: str = "") -> get_model_metadata_pb2.SignatureDefMap:
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        request.model_spec.name = name or self.model
        response = self.prediction.GetModelMetadata(request, timeout=120)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(signatures)
        return signatures


class Servers:
    """The running servers by their flags, to which tests add models."""

    def __init__(self, folder: Path) -> None:
        self.running = ExitStack()
        self.folder = folder  # also has request logs
        self._stay: set[str] = set()
        self._served: dict[tuple[str, ...], tuple[ServerProcess, dict[str, str]]] = {}

    def serve(
        self,
        base_path: Path,
        *flags: str,
        name: str = "",
        fields: str = "",
        stays: bool = False,
    ) -> "Stubs":
        """Serves one more model, with these fields in its configuration; returns its stubs.

        By default, its name is unique and the server's flags are EVERYTHING. The model is removed
        after the module's tests, unless `stays` is set.
        """
        server, served = self._server(flags or EVERYTHING)
        name = name or f"{base_path.name}_{next(_NUMBERS)}"
        served[name] = (
            f'name: "{name}" base_path: "{base_path}" model_platform: "tensorflow" {fields}'
        )
        if stays:
            self._stay.add(name)
        stubs = Stubs(server.target, model=name)
        stubs.server = server
        try:
            stubs.reload("".join(f"config {{ {model} }}" for model in served.values()))
        except grpc.RpcError:
            del served[name]
            raise
        return stubs

    def forget(self) -> None:
        """Marks models for removal when the next one is added, except those that stay."""
        for _, served in self._served.values():
            for name in served.keys() - self._stay:
                del served[name]

    def _server(self, flags: tuple[str, ...]) -> tuple[ServerProcess, dict[str, str]]:
        if flags not in self._served:
            empty = self.folder / "empty.config"
            empty.write_text("model_config_list {}")
            files = [f"--model_config_file={empty}", f"--request_log_directory={self.folder}"]
            server = ServerProcess(flags=[*publishing(self.folder), *files, *FAST, *flags])
            self._served[flags] = self.running.enter_context(server), {}
        return self._served[flags]
