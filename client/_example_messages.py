"""tf.train.Example as protobuf messages of our own, in a descriptor pool of our own.

A process may hold TensorFlow's example.proto in protobuf's default pool; a second registration
there would fail. In a private pool the messages can also be declared as suits us: the map of
features as a list of undecoded entries, so that equal ones are found without parsing them.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_File = descriptor_pb2.FileDescriptorProto
_Field = descriptor_pb2.FieldDescriptorProto


class Messages(NamedTuple):
    """The message classes.

    Attributes:
        Examples: `examples`: repeated Example; an ExampleListWithContext without its context.
        Feature: `bytes_list`, `float_list`, `int64_list`, each with repeated `value`.
    """

    Examples: Any
    Feature: Any


@lru_cache(maxsize=1)
def messages() -> Messages:
    """Builds the classes once per process."""
    file = _File(name="colcast/example.proto", package="colcast", syntax="proto3")
    _message(file, "BytesList", value=(1, _Field.TYPE_BYTES, True))
    _message(file, "FloatList", value=(1, _Field.TYPE_FLOAT, True))
    _message(file, "Int64List", value=(1, _Field.TYPE_INT64, True))
    _message(
        file,
        "Feature",
        bytes_list=(1, "BytesList", False),
        float_list=(2, "FloatList", False),
        int64_list=(3, "Int64List", False),
    )
    _message(file, "Features", feature=(1, _Field.TYPE_BYTES, True))
    _message(file, "Example", features=(1, "Features", False))
    _message(file, "Examples", examples=(1, "Example", True))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    named = {name: pool.FindMessageTypeByName(f"colcast.{name}") for name in Messages._fields}
    return Messages(*(message_factory.GetMessageClass(named[name]) for name in Messages._fields))


def _message(file: Any, name: str, **fields: tuple[int, int | str, bool]) -> None:
    """Declares a message; a field is (number, scalar type or message name, repeated)."""
    message = file.message_type.add(name=name)
    for field_name, (number, kind, repeated) in fields.items():
        field = message.field.add(name=field_name, number=number)
        field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
        if isinstance(kind, str):
            field.type, field.type_name = _Field.TYPE_MESSAGE, f".colcast.{kind}"
        else:
            field.type = kind
