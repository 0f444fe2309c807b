"""Declarations of inputs and outputs: words on the command line, or a file beside the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from npukit.application.declared import NOTHING, Declared, declared_for, load_declared, parsed_input, parsed_output
from npukit.errors import NpukitError

FILE = """
[[input]]
input = "image"
type = "uint8"
scale = 0.25
mean = [0.5, 0.25, 0.125]
std = 2
layout = "NHWC"

[[output]]
softmax = true
top = 3
"""


def test_words_and_file_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text(FILE)
    image = parsed_input("uint8 scale=0.25 mean=0.5,0.25,0.125 std=2 layout=NHWC input=image")
    assert load_declared(tmp_path / "model.toml") == Declared(input=(image,), output=(parsed_output("softmax top=3"),))


def test_the_command_line_comes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text(FILE)
    model = tmp_path / "model.onnx"
    assert declared_for(model).input[0].type == "uint8"
    both = declared_for(model, ["float32"], [])
    assert both.input == (parsed_input("float32"),)
    assert both.output[0].top == 3
    assert declared_for(tmp_path / "other.onnx") == NOTHING


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("uint9", "type: Input should be 'float32', 'int16', 'int8' or 'uint8'"),
        ("uint8 scale=0", "scale: Input should be greater than 0"),
        ("uint8 scale=nan", "scale: Input should be a finite number"),
        ("uint8 std=1,0", r"std\.1: Input should be greater than 0"),
        ("uint8 mean=", "mean"),
        ("scale=2", "scale, mean and std need the type that the sensor gives"),
        ("uint8 layout=CHW", "layout"),
        ("uint8 foo=3", "foo: Extra inputs are not permitted"),
        ("'", "cannot be read: No closing quotation"),
    ],
)
def test_wrong_inputs(words: str, fault: str) -> None:
    with pytest.raises(NpukitError, match=fault):
        parsed_input(words)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("top=0", "top: Input should be greater than or equal to 1"),
        ("top", "top: Input should be a valid integer"),
        ("top=3 argmax", "argmax and top exclude each other"),
        ("argmax output=-1", "output: Input should be greater than or equal to 0"),
        ("median", "median: Extra inputs are not permitted"),
    ],
)
def test_wrong_outputs(words: str, fault: str) -> None:
    with pytest.raises(NpukitError, match=fault):
        parsed_output(words)


@pytest.mark.parametrize("text", ["[[input]", "input = 3", "[[input]]\ntype = 'uint9'", "\xff"])
def test_wrong_files(text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(NpukitError, match=r"model\.toml"):
        load_declared(path)
