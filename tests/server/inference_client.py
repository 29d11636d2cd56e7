"""A wrapper of Triton's client with short methods for tests."""

from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from colcast.server import ServerProcess
from tritonclient.utils import InferenceServerException, np_to_triton_dtype


class InferenceClient:
    """Triton's client over gRPC."""

    def __init__(self, server: ServerProcess) -> None:
        self.triton = tritonclient.grpc.InferenceServerClient(server.target)

    def infer(
        self,
        columns: dict[str, Any],
        signature: str = "",
        model: str = "staged",
        outputs: tuple[str, ...] = (),
        **options: Any,
    ) -> Any:
        """Calls ModelInfer; returns the result as Triton's client does."""
        inputs = []
        for name, value in columns.items():
            array = np.asarray(value)
            tensor = tritonclient.grpc.InferInput(
                name, list(array.shape), np_to_triton_dtype(array.dtype)
            )
            inputs.append(tensor.set_data_from_numpy(array) or tensor)
        if signature:
            options["parameters"] = {"signature_name": signature}
        wanted = [tritonclient.grpc.InferRequestedOutput(name) for name in outputs]
        return self.triton.infer(model, inputs, outputs=wanted or None, **options)

    def scores(self, columns: dict[str, Any], signature: str, **options: Any) -> dict[str, Any]:
        """The outputs of the ranker, by name."""
        result = self.infer(columns, signature, outputs=("score", "tag"), **options)
        return {name: result.as_numpy(name) for name in ("score", "tag")}

    def error(self, *arguments: Any, **options: Any) -> tuple[str, str]:
        """The status and the message of a refused request."""
        with pytest.raises(InferenceServerException) as raised:
            self.infer(*arguments, **options)
        return raised.value.status(), raised.value.message()

    def metadata(self, model: str, signature: str) -> dict[str, Any]:
        """The metadata of a signature: its inputs and outputs."""
        found = self.triton.get_model_metadata(
            model, headers={"x-colcast-signature-name": signature}, as_json=True
        )
        # protobuf's JSON writes int64 values as text
        for tensor in (*found["inputs"], *found["outputs"]):
            tensor["shape"] = [int(size) for size in tensor["shape"]]
        return found  # type: ignore[no-any-return]
