"""Every way to change one field of a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message

Change = Callable[[Any], None]


def others(field: Any, value: Any) -> Iterator[Any]:
    """Yields other values of a field's type, near and far."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        far = 2**63 - 1 if field.cpp_type in (Field.CPPTYPE_INT64, Field.CPPTYPE_UINT64) else 2**31 - 1
        yield from (value + 1, far)
        if value > 0 or field.cpp_type in (Field.CPPTYPE_INT32, Field.CPPTYPE_INT64):
            yield value - 1
    elif isinstance(value, str):
        yield value + "x"
        if value:
            yield ""
    else:
        yield value + b"\0"
        if value:
            yield from (b"", bytes([value[0] ^ 1]) + value[1:])


def changes(message: Message, path: str = "") -> Iterator[tuple[str, Change]]:
    """Yields the path of a field, and what changes it in a copy of the message."""
    for field in message.DESCRIPTOR.fields:
        name, here = field.name, f"{path}.{field.name}" if path else field.name
        if field.is_repeated:
            yield from _repeated(message, field, here)
        elif field.message_type is not None:
            if message.HasField(name):
                yield f"{here} cleared", lambda copy, name=name: copy.ClearField(name)  # type: ignore[misc]
                for inner, change in changes(getattr(message, name), here):
                    yield inner, lambda copy, name=name, change=change: change(getattr(copy, name))  # type: ignore[misc]
        elif field.containing_oneof is None or message.HasField(name) or field.containing_oneof.name.startswith("_"):
            for value in others(field, getattr(message, name)):
                yield here, lambda copy, name=name, value=value: setattr(copy, name, value)  # type: ignore[misc]


def _repeated(message: Message, field: Any, here: str) -> Iterator[tuple[str, Change]]:
    name, values = field.name, getattr(message, field.name)
    if not values:
        if field.message_type is None:
            extra = {Field.TYPE_STRING: "x", Field.TYPE_BYTES: b"x"}.get(field.type, 1)
            yield f"{here} longer", lambda copy: getattr(copy, name).append(extra)
        return
    yield f"{here} shorter", lambda copy: getattr(copy, name).pop()
    yield f"{here} longer", lambda copy: getattr(copy, name).append(getattr(copy, name)[0])
    for place, one in enumerate(values):
        if isinstance(one, Message):
            for inner, change in changes(one, f"{here}[{place}]"):
                yield inner, lambda copy, place=place, change=change: change(getattr(copy, name)[place])  # type: ignore[misc]
        else:
            for value in others(field, one):
                yield (
                    f"{here}[{place}]",
                    lambda copy, place=place, value=value: getattr(copy, name).__setitem__(place, value),  # type: ignore[misc]
                )
