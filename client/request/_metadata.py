"""GetModelMetadata: encodes the request, and decodes the schema from the answer."""

from colcast.client._errors import SchemaError, UnknownDtypeError
from colcast.client.columns._decode import (
    ModelSpec,
    decode_dimensions,
    decode_model_spec,
    decode_tensor,
)
from colcast.client.columns._dtypes import Array, DType, dtype_of_number
from colcast.client.columns._encode import model_spec
from colcast.client.columns._schema import ModelSchema, Shape, Signature, TensorSpec
from colcast.client.wire import (
    field,
    fields,
    integer,
    map_entry,
    message,
    text,
)


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
    model = ModelSpec()
    signatures: dict[str, Signature] = {}
    unreadable: tuple[str, ...] = ()
    for number, _, value in fields(data):
        if number == 1:
            model = decode_model_spec(message(number, value))
        elif number == 2:
            key, packed = map_entry(message(number, value))
            if key == "signature_def":
                signatures, unreadable = _decode_signatures(packed)
    if unreadable and not signatures:
        raise SchemaError(
            f"model {model.name!r} has only signatures with tensors of a dtype that cannot be "
            f"sent: {', '.join(sorted(unreadable))}"
        )
    if not signatures:
        raise SchemaError(f"the metadata of model {model.name!r} has no signatures")
    return ModelSchema(model.name, model.version, signatures, unreadable)


def _decode_signatures(packed: bytes) -> tuple[dict[str, Signature], tuple[str, ...]]:
    signatures: dict[str, Signature] = {}
    unreadable: list[str] = []
    for number, _, value in fields(packed):
        if number != 2:  # Any.value
            continue
        for inner, _, entry in fields(message(number, value)):
            if inner != 1:
                continue
            name, definition = map_entry(message(inner, entry))
            if name.startswith("__"):  # TensorFlow's own signatures, such as __saved_model_init_op
                continue
            try:
                signatures[name] = _decode_signature(name, definition)
            except UnknownDtypeError:
                unreadable.append(name)
    return signatures, tuple(unreadable)


def _decode_signature(name: str, data: bytes) -> Signature:
    inputs: dict[str, TensorSpec] = {}
    outputs: dict[str, TensorSpec] = {}
    defaults: dict[str, Array] = {}
    method = ""
    for number, _, value in fields(data):
        if number == 3:
            method = text(number, value)
        elif number in (1, 2, 4):
            key, content = map_entry(message(number, value))
            if number == 4:
                defaults[key] = decode_tensor(content, key)
            else:
                (inputs if number == 1 else outputs)[key] = _decode_spec(key, content)
    return Signature(name, inputs, outputs, defaults, method)


def _decode_spec(name: str, data: bytes) -> TensorSpec:
    dtype: DType | None = None
    shape: Shape | None = ()
    for number, _, value in fields(data):
        if number == 2:
            dtype = dtype_of_number(integer(number, value))
        elif number == 3:
            sizes = decode_dimensions(message(number, value))
            shape = None if sizes is None else tuple(None if n < 0 else n for n in sizes)
    if dtype is None:
        raise UnknownDtypeError(f"{name!r} has no dtype in the model's metadata")
    return TensorSpec(name, dtype, shape)
