"""Protobuf's wire format, as far as ONNX graphs need it: fields of a message are read and written without a schema."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import TypeAlias

Buffer: TypeAlias = mmap.mmap | bytes

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def iterate_fields(data: Buffer, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, begin and end of every field of bytes between two positions; other fields are skipped."""
    while position < end:
        tag, position = read_varint(data, position)
        wire = tag & 7
        if wire == _BYTES:
            length, begin = read_varint(data, position)
            position = begin + length
            if position > end:
                raise ValueError(f"a field of {length} bytes at {begin} ends after its message")
            yield tag >> 3, begin, position
        elif wire == _VARINT:
            _, position = read_varint(data, position)
        elif wire in (_FIXED64, _FIXED32):
            position += 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"unknown wire type {wire} at byte {position}")


def read_integers(message: bytes) -> dict[int, list[int]]:
    """The whole numbers of a message by field, signed; packed fields are not read."""
    numbers: dict[int, list[int]] = {}
    position = 0
    while position < len(message):
        tag, position = read_varint(message, position)
        wire = tag & 7
        if wire == _VARINT:
            value, position = read_varint(message, position)
            numbers.setdefault(tag >> 3, []).append(value - (1 << 64) if value >> 63 else value)
        elif wire == _BYTES:
            length, position = read_varint(message, position)
            position += length
        elif wire in (_FIXED64, _FIXED32):
            position += 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"unknown wire type {wire} at byte {position}")
    return numbers


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """An unsigned number and the position after it; ValueError for more than ten bytes."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError(f"a number of more than ten bytes at {position}")


def encode_field(number: int, value: int) -> bytes:
    """A field with a whole number; negative ones are int64."""
    return encode_varint(number << 3 | _VARINT) + encode_varint(value % (1 << 64))


def encode_message(number: int, content: bytes) -> bytes:
    """A field with a message, a text or bytes."""
    return encode_varint(number << 3 | _BYTES) + encode_varint(len(content)) + content


def encode_varint(value: int) -> bytes:
    """An unsigned number."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
