"""Messages for a fuzzer: drawn from the protocol's own descriptors, and bytes that are no message at all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

_INTS: Final = (0, 1, -1, 2, 3, 7, 63, 64, 100, 255, 256, 4_096, 4_097, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**32)
_LENGTHS: Final = (0, 1, 16, 31, 32, 33, 64, 1_000)
_TEXTS: Final = (
    "", " ", "x", "pass", "open", "trump:H+reverse", "contract:royalty", "\x00", "\x1b[2J", "qs", "7S7S",
    "../../etc/passwd", "%s%n{0}", "'; DROP TABLE matches; --", "=cmd|' /C calc'!A0", "\u202eevil", "\u200b", "é" * 70,
    "e" + "\u0301" * 200, "\U0001f0a1" * 20, "guillotine", "regicide", "greedy", "first", "a" * 65, "A" * 5_000,
    "NaN", "-0",
)  # fmt: skip
_BOUNDS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


class Generator:
    """Draws messages.

    Attributes:
        known: texts that mean something at the moment, such as ids, by the name of the field that takes them.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.known: dict[str, Sequence[str]] = {}

    def message(self, kind: Descriptor, depth: int = 0) -> Message:
        """Returns a message of a kind, its fields set, unset, at their bounds or beyond them."""
        message = message_factory.GetMessageClass(kind)()
        density = self.chance.choice((0.3, 0.7, 0.95))
        for field in kind.fields:
            if self.chance.random() < density and depth < 6:
                if field.containing_oneof is not None and self.chance.random() > 2 / len(field.containing_oneof.fields):
                    continue
                self._set(message, field, depth)
        return message

    def _set(self, message: Message, field: FieldDescriptor, depth: int) -> None:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            getattr(message, field.name)[self._text("")] = self._text("")
        elif field.is_repeated:
            values = getattr(message, field.name)
            for _ in range(self.chance.choice((0, 1, 1, 2, 3, 4, 4, 300 if self.chance.random() < 0.03 else 5))):
                if field.message_type is not None:
                    values.add().CopyFrom(self.message(field.message_type, depth + 1))
                else:
                    values.append(self._value(field))
        elif field.message_type is not None:
            getattr(message, field.name).CopyFrom(self.message(field.message_type, depth + 1))
        else:
            setattr(message, field.name, self._value(field))

    def _value(self, field: FieldDescriptor) -> Any:
        kind = field.cpp_type
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return self.chance.random() < 0.5
        if kind == FieldDescriptor.CPPTYPE_ENUM:
            assert field.enum_type is not None
            numbers = [value.number for value in field.enum_type.values]
            return self.chance.choice((*numbers, *numbers, 99, -1, 2**31 - 1))
        if kind == FieldDescriptor.CPPTYPE_STRING:
            return self._bytes() if field.type == FieldDescriptor.TYPE_BYTES else self._text(field.name)
        if kind in _BOUNDS:
            low, high = _BOUNDS[kind]
            drawn = self.chance.choice(_INTS) if self.chance.random() < 0.5 else self.chance.randrange(40)
            return min(max(drawn, low), high)
        return self.chance.choice((0.0, -0.0, 1e308, float("nan"), float("inf")))

    def _text(self, name: str) -> str:
        known = self.known.get(name)
        if known and self.chance.random() < 0.8:
            return self.chance.choice(known)
        return self.chance.choice(_TEXTS)

    def _bytes(self) -> bytes:
        return self.chance.randbytes(self.chance.choice(_LENGTHS))

    # Bytes.

    def encoded(self, kind: Descriptor) -> bytes:
        """Returns bytes that are such a message, or nearly, or not at all."""
        draw = self.chance.random()
        if draw < 0.06:
            return self.rubbish()
        data = self.message(kind).SerializeToString()
        if draw < 0.75:
            return data
        return self.chance.choice((self._flipped, self._cut, self._spliced, self._extended, self._bad_text))(data)

    def rubbish(self) -> bytes:
        """Returns bytes that are no message."""
        nested = b""
        for _ in range(self.chance.choice((5, 150, 400))):
            nested = b"\x0a" + _varint(len(nested)) + nested
        return self.chance.choice(
            (
                self.chance.randbytes(self.chance.choice((1, 3, 10, 100, 3_000))),
                b"\x0b" * self.chance.choice((1, 101, 10_000)),
                b"\x0b\x0c" * 5_000,
                nested,
                b"\x0a\xff\xff\xff\xff\x7f",
                b"\xff" * 20,
                b"\x00",
                bytes(65_536),
                bytes(65_537),
            )
        )

    def _flipped(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self.chance.randint(1, 4)):
            if changed:
                changed[self.chance.randrange(len(changed))] ^= 1 << self.chance.randrange(8)
        return bytes(changed)

    def _cut(self, data: bytes) -> bytes:
        return data[: self.chance.randrange(len(data) + 1)]

    def _spliced(self, data: bytes) -> bytes:
        at = self.chance.randrange(len(data) + 1)
        return data[:at] + self.chance.randbytes(self.chance.randrange(8)) + data[at:]

    def _extended(self, data: bytes) -> bytes:
        unknown = self.chance.choice(
            (b"\xc2\x3e" + _varint(60_000) + bytes(60_000), b"\xc0\x3e\x01", b"\xc5\x3e1234", b"\xfa\x3f\x00")
        )
        return data + unknown

    def _bad_text(self, data: bytes) -> bytes:
        letters = [place for place, byte in enumerate(data) if 0x61 <= byte <= 0x7A]
        if not letters:
            return data
        at = self.chance.choice(letters)
        return data[:at] + self.chance.choice((b"\xff", b"\xc3", b"\xed\xa0\x80"[:1])) + data[at + 1 :]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
