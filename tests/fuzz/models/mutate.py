"""Damage to bytes, to the integers in a format, and to the fields of an ONNX model."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from io import BytesIO
from zipfile import ZipFile

import numpy as np
import onnx
from google.protobuf.message import DecodeError, Message
from onnx import numpy_helper

ODD = (0, 1, 2, 3, 4, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 8)
ODD_NUMBERS = (0, 1, -1, 2, 7, -128, 1 << 20, (1 << 31) - 1, -(1 << 31), (1 << 62))
ODD_FLOATS = (0.0, -1.0, float("nan"), float("inf"), 1e-40, 3e38)
ODD_NAMES = ("", "x", "*/ int x;", "../../etc/passwd", "a" * 5000, "\u0000\n", "y", "w")


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Damage in one to four places."""
    for _ in range(dice.randint(1, 4)):
        data = dice.choice(BYTES)(data, dice) if data else data
    return data


def damaged_onnx(data: bytes, dice: random.Random) -> bytes:
    """Mostly a valid encoding of a meaningless model."""
    if dice.random() < 0.25:
        return damaged(data, dice)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        return damaged(data, dice)
    if dice.random() < 0.6:
        for _ in range(dice.randint(1, 2)):
            dice.choice(CHANGES)(model, dice)
        return model.SerializeToString()
    for _ in range(dice.randint(1, 4)):
        dice.choice((_change_field, _change_field, _change_field, _move_node, _rewire))(model, dice)
    return model.SerializeToString()


def damaged_archive(data: bytes, dice: random.Random) -> bytes:
    """Mostly a valid archive with a damaged file: other numbers and names in the text, or other bytes."""
    if dice.random() < 0.2:
        return damaged(data, dice)
    with ZipFile(BytesIO(data)) as archive:
        parts = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    name = dice.choice(sorted(parts))
    name = next(each for each in parts if each.endswith("models/model.json")) if dice.random() < 0.6 else name
    parts[name] = (_other_words if name.endswith(".json") else damaged)(parts[name], dice)
    target = BytesIO()
    with ZipFile(target, "w") as archive:
        for each, content in parts.items():
            archive.writestr(each, content)
    return target.getvalue()


def _other_words(data: bytes, dice: random.Random) -> bytes:
    """JSON with some numbers, names and booleans replaced."""
    text = data.decode(errors="replace")
    for _ in range(dice.randint(1, 4)):
        words = list(re.finditer(r'-?\d+|"[^"]*"|true|false|null', text))
        if words:
            chosen = dice.choice(words)
            other = dice.choice(
                (*map(str, ODD_NUMBERS), *map(json.dumps, ODD_NAMES), "null", "[]", dice.choice(words)[0])
            )
            text = text[: chosen.start()] + other + text[chosen.end() :]
    return text.encode()


def _flip(data: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << dice.randrange(8))]) + data[place + 1 :]


def _odd_word(data: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(data)) & ~3
    return data[:place] + dice.choice(ODD).to_bytes(4, "little") + data[place + 4 :]


def _nudge(data: bytes, dice: random.Random) -> bytes:
    """Change a word slightly: a wrong offset or length."""
    place = dice.randrange(len(data)) & ~3
    word = int.from_bytes(data[place : place + 4], "little") + dice.choice((-8, -4, -1, 1, 4, 8))
    return data[:place] + (word % 2**32).to_bytes(4, "little") + data[place + 4 :]


def _cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data))]


def _copy(data: bytes, dice: random.Random) -> bytes:
    """Copy a piece over another."""
    start, length, target = dice.randrange(len(data)), dice.randint(1, 64), dice.randrange(len(data))
    piece = data[start : start + length]
    return data[:target] + piece + data[target + len(piece) :]


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (_flip, _odd_word, _odd_word, _nudge, _nudge, _cut, _copy)


def _messages(message: Message) -> list[Message]:
    """A message and all messages inside."""
    found = [message]
    for descriptor, value in message.ListFields():
        if descriptor.type == descriptor.TYPE_MESSAGE:
            for part in value if hasattr(value, "__len__") else [value]:
                found += _messages(part)
    return found


def _change_field(model: onnx.ModelProto, dice: random.Random) -> None:
    message = dice.choice(_messages(model.graph))
    fields = message.ListFields()
    if not fields:
        return
    descriptor, value = dice.choice(fields)
    many = hasattr(value, "append") or hasattr(value, "add")
    if descriptor.type == descriptor.TYPE_MESSAGE or dice.random() < 0.1:
        message.ClearField(descriptor.name)
    elif many and len(value):
        place = dice.randrange(len(value))
        value[place] = _odd(value[place], dice)
    elif not many:
        _set(message, descriptor.name, _odd(value, dice))


def _set(message: Message, name: str, value: object) -> None:
    try:
        setattr(message, name, value)
    except (ValueError, TypeError):
        message.ClearField(name)


def _odd(value: object, dice: random.Random) -> object:
    if isinstance(value, bytes):
        return damaged(value, dice)
    if isinstance(value, str):
        return dice.choice(ODD_NAMES)
    if isinstance(value, float):
        return dice.choice(ODD_FLOATS)
    number = dice.choice(ODD_NUMBERS)
    return number if isinstance(value, int) and abs(number) < 1 << 31 else value


def _move_node(model: onnx.ModelProto, dice: random.Random) -> None:
    """Delete or duplicate a node."""
    nodes = model.graph.node
    if nodes:
        chosen = dice.randrange(len(nodes))
        if dice.random() < 0.5:
            del nodes[chosen]
        else:
            nodes.append(nodes[chosen])


def _rewire(model: onnx.ModelProto, dice: random.Random) -> None:
    """Connect a node's input to another value, perhaps to the node's own output."""
    names = [name for node in model.graph.node for name in (*node.input, *node.output)]
    readers = [node for node in model.graph.node if node.input]
    if names and readers:
        node = dice.choice(readers)
        node.input[dice.randrange(len(node.input))] = dice.choice(names)


def _change_attribute(model: onnx.ModelProto, dice: random.Random) -> None:
    """Change a number or word of an attribute slightly."""
    attributes = [attribute for node in model.graph.node for attribute in node.attribute]
    if not attributes:
        return
    attribute = dice.choice(attributes)
    if attribute.ints:
        place = dice.randrange(len(attribute.ints))
        attribute.ints[place] += dice.choice((-2, -1, 1, 2, 3))
    elif attribute.type == onnx.AttributeProto.INT:
        attribute.i = dice.choice((attribute.i + 1, attribute.i - 1, -attribute.i, 0, 1, 2))
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = dice.choice((*ODD_FLOATS[:2], attribute.f * 2, -attribute.f, 0.5))
    elif attribute.type == onnx.AttributeProto.STRING:
        attribute.s = dice.choice(WORDS)


def _change_constant(model: onnx.ModelProto, dice: random.Random) -> None:
    """Change one number of a constant: a scale, a zero point, a weight, a shape."""
    tensors = [tensor for tensor in model.graph.initializer if tensor.raw_data]
    if not tensors:
        return
    tensor = dice.choice(tensors)
    value = numpy_helper.to_array(tensor).copy()
    flat = value.reshape(-1)
    place = dice.randrange(flat.size)
    if value.dtype.kind == "f":
        flat[place] *= dice.choice((2, 0.5, 10, 1e3, 1e6, 1e-3, 1e-6))
    elif value.dtype.kind in "iu":
        limits = np.iinfo(value.dtype)
        flat[place] = min(max(int(flat[place]) + dice.choice((-3, -1, 1, 3, 100)), limits.min), limits.max)
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def _change_shape(model: onnx.ModelProto, dice: random.Random) -> None:
    """Change a declared size of an input or a value."""
    graph = model.graph
    values = [*graph.input, *graph.output, *graph.value_info]
    sizes = [size for value in values for size in value.type.tensor_type.shape.dim if size.HasField("dim_value")]
    if sizes:
        size = dice.choice(sizes)
        size.dim_value = max(size.dim_value + dice.choice((-1, 1, 2)), 0)


WORDS = (
    b"SAME_UPPER",
    b"SAME_LOWER",
    b"VALID",
    b"NOTSET",
    b"linear",
    b"cubic",
    b"asymmetric",
    b"edge",
    b"reflect",
    b"x",
)
CHANGES: tuple[Callable[[onnx.ModelProto, random.Random], None], ...] = (
    _change_attribute,
    _change_attribute,
    _change_constant,
    _change_shape,
)
"""Changes after which a model is still valid, or nearly."""
