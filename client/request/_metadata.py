"""GetModelMetadata: encodes the request, and decodes the schema from the answer."""

from typing import Any

from colcast.client._errors import SchemaError, UnknownDtypeError
from colcast.client.columns._decode import array_of, model_of
from colcast.client.columns._dtypes import dtype_of_number
from colcast.client.columns._encode import model_spec
from colcast.client.columns._schema import ModelSchema, Signature, TensorSpec
from colcast.client.messages import parse, shape_of
from colcast.client.wire import field


def encode_metadata_request(
    model: str, version: int | None = None, version_label: str | None = None
) -> bytes:
    """The bytes of a GetModelMetadataRequest for the signatures of a model."""
    return model_spec(model, None, version, version_label) + field(2, b"signature_def")


def decode_metadata_response(data: bytes) -> ModelSchema:
    """Decodes a GetModelMetadataResponse: a SignatureDefMap inside an Any.

    Raises:
        DecodeError: the message is malformed.
        SchemaError: it has no signatures whose tensors can be sent.
    """
    response = parse("GetModelMetadataResponse", data)
    model = model_of(response)
    signatures: dict[str, Signature] = {}
    unreadable: list[str] = []
    packed = parse("SignatureDefMap", response.metadata["signature_def"].value)
    for name, definition in packed.signature_def.items():
        if name.startswith("__"):  # TensorFlow's own signatures, such as __saved_model_init_op
            continue
        try:
            signatures[name] = _signature(name, definition)
        except UnknownDtypeError:
            unreadable.append(name)
    if unreadable and not signatures:
        raise SchemaError(
            f"model {model.name!r} has only signatures with tensors of a dtype that cannot be "
            f"sent: {', '.join(sorted(unreadable))}"
        )
    if not signatures:
        raise SchemaError(f"the metadata of model {model.name!r} has no signatures")
    return ModelSchema(model.name, model.version, signatures, tuple(unreadable))


def _signature(name: str, proto: Any) -> Signature:
    defaults = {key: array_of(tensor, key) for key, tensor in proto.defaults.items()}
    return Signature(name, _specs(proto.inputs), _specs(proto.outputs), defaults, proto.method_name)


def _specs(infos: Any) -> dict[str, TensorSpec]:
    return {
        key: TensorSpec(key, dtype_of_number(info.dtype), shape_of(info.tensor_shape))
        for key, info in infos.items()
    }
