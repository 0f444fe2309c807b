"""A vendor's network compiler, run as a command: reads a subgraph from a file, writes a blob."""

from __future__ import annotations

import base64
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from npukit.accel.subgraphs.json_file import subgraph_text
from npukit.accel.subgraphs.onnx_file import subgraph_onnx
from npukit.accel.subgraphs.tflite_file import subgraph_tflite
from npukit.errors import NpukitError
from npukit.host.programs import run
from npukit.net.net import Net, Op

COMPILED = "compiled.json"
Form = Literal["json", "onnx", "tflite"]
LAST_WORDS = 400
"""Limit in characters of the command's output quoted in an error, counted from the end."""


def _decoded(text: object) -> bytes:
    return base64.b64decode(text, validate=True) if isinstance(text, str) else b""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["npukit-blob"]
    version: Literal[1]


class CompiledBlob(_Answer):
    """The command's result: a blob for the accelerator, and the resources to run it."""

    blob: Annotated[bytes, BeforeValidator(_decoded)] = Field(min_length=1)
    cycles: int = Field(ge=0)
    scratch_bytes: int = Field(default=0, ge=0)
    arena: list[int] = []
    """Preferred offsets in the scratch memory for the inputs, in the subgraph's order, and for the output."""


class RefusedSubgraph(_Answer):
    """The command's result if the accelerator cannot run the subgraph: the reason, in words."""

    refusal: str = Field(min_length=1)


class NetworkCompiler:
    """The accelerator's command `words... SUBGRAPH COMPILED`, which reads the first file and writes the second.

    `form`: format of the subgraph; only JSON includes the accelerator's figures. Each subgraph is compiled once. An
    error names the op if the command fails, is missing, takes longer than `seconds` or leaves an invalid result; the
    subgraph is then kept, to try the command by hand.
    """

    def __init__(
        self,
        name: str,
        words: Sequence[str | Path],
        figures: Mapping[str, int],
        seconds: float = 600,
        form: Form = "json",
    ) -> None:
        self._name, self._form, self._seconds, self._figures = name, form, seconds, figures
        self._command = [*map(str, words), f"subgraph.{form}", COMPILED]
        self._answers: dict[bytes, CompiledBlob | RefusedSubgraph] = {}

    @property
    def rounds_twice(self) -> bool:
        """True for files of TFLite, which mean two roundings."""
        return self._form == "tflite"

    def compiled(self, net: Net, op: Op) -> CompiledBlob | RefusedSubgraph:
        subgraph = self._written(net, op)
        if subgraph not in self._answers:
            folder = Path(tempfile.mkdtemp(prefix=f"{self._name}-"))
            (folder / f"subgraph.{self._form}").write_bytes(subgraph)
            try:
                done = run(self._command, folder, seconds=self._seconds)
            except TimeoutError as error:
                raise self._wrong(folder, op, f"has not ended after {self._seconds:g} seconds") from error
            except OSError as error:
                raise self._wrong(folder, op, f"cannot be run: {error.strerror}") from error
            if done.returncode:
                words = (done.stderr or done.stdout).strip()[-LAST_WORDS:]
                raise self._wrong(folder, op, f"failed with status {done.returncode}: {words or 'it said nothing'}")
            answer = self._read(folder, op)
            shutil.rmtree(folder)
            self._answers[subgraph] = answer
        return self._answers[subgraph]

    def _written(self, net: Net, op: Op) -> bytes:
        if self._form != "json":
            return subgraph_tflite(net, op) if self._form == "tflite" else subgraph_onnx(net, op)
        return subgraph_text(net, op, self._figures).encode()

    def _read(self, folder: Path, op: Op) -> CompiledBlob | RefusedSubgraph:
        try:
            text = (folder / COMPILED).read_bytes()
        except OSError as error:
            raise self._wrong(folder, op, f"has ended well, but left no {COMPILED}") from error
        try:
            return (RefusedSubgraph if b'"refusal"' in text else CompiledBlob).model_validate_json(text)
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"])) or "the file"
            raise self._wrong(folder, op, f"left nonsense in {COMPILED}: {where}: {fault['msg']}") from error

    def _wrong(self, folder: Path, op: Op, what: str) -> NpukitError:
        command = f"cd {folder} && {shlex.join(self._command)}"
        fact = f"the network compiler of {self._name} {what}; it had to compile {op.name} ({op.title})"
        return NpukitError(fact, tries=[command, "docs/plug-in.md says what it reads and writes", "--engine cpu"])
