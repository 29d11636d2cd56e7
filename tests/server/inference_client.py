"""A wrapper of Triton's client with short methods for tests."""

from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from colcast.server import ServerProcess
from tritonclient.utils import InferenceServerException, np_to_triton_dtype


class InferenceClient:
    """Triton's client over gRPC, over HTTP with binary tensors, or over HTTP with only JSON."""

    def __init__(self, server: ServerProcess, form: str) -> None:
        self.form = form
        self._module = tritonclient.grpc if form == "grpc" else tritonclient.http
        target = server.target if form == "grpc" else server.rest_target
        self.triton = self._module.InferenceServerClient(target)
        self._binary = {} if form == "grpc" else {"binary_data": form == "binary"}

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
            tensor = self._module.InferInput(
                name, list(array.shape), np_to_triton_dtype(array.dtype)
            )
            inputs.append(tensor.set_data_from_numpy(array, **self._binary) or tensor)
        if signature:
            options["parameters"] = {"signature_name": signature}
        wanted = [self._module.InferRequestedOutput(name, **self._binary) for name in outputs]
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
        if self.form == "grpc":
            found = self.triton.get_model_metadata(
                model, headers={"x-colcast-signature-name": signature}, as_json=True
            )
            # protobuf's JSON writes int64 values as text
            for tensor in (*found["inputs"], *found["outputs"]):
                tensor["shape"] = [int(size) for size in tensor["shape"]]
            return found  # type: ignore[no-any-return]
        return self.triton.get_model_metadata(  # type: ignore[no-any-return]
            model, query_params={"signature_name": signature}
        )
