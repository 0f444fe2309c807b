"""A network compiler of a vendor's own, run as a command: a subgraph goes in as a file, a blob comes out."""

from __future__ import annotations

import base64
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from npukit.accel.subgraph_file import subgraph_text
from npukit.errors import NpukitError
from npukit.net.net import Net, Op

SUBGRAPH, COMPILED = "subgraph.json", "compiled.json"
LAST_WORDS = 400
"""Characters of what the command said last that go into an error."""


def _decoded(text: object) -> bytes:
    return base64.b64decode(text, validate=True) if isinstance(text, str) else b""


class Compiled(BaseModel):
    """The command's result: a blob for the accelerator, and what running it needs."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["npukit-blob"]
    version: Literal[1]
    blob: Annotated[bytes, BeforeValidator(_decoded)] = Field(min_length=1)
    cycles: int = Field(ge=0)
    scratch_bytes: int = Field(default=0, ge=0)


class Refused(BaseModel):
    """The command's result if the accelerator cannot run this: the reason, in words."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["npukit-blob"]
    version: Literal[1]
    refusal: str = Field(min_length=1)


class NetworkCompiler:
    """The accelerator's command `words... SUBGRAPH COMPILED`: it reads the one file and writes the other.

    Each subgraph is compiled once. A command that fails, is missing, takes longer than `seconds` or leaves anything
    but what it should is an error that names the op; the subgraph is then kept, to try the command by hand.
    """

    def __init__(
        self, name: str, words: Sequence[str | Path], figures: Mapping[str, int], seconds: float = 600
    ) -> None:
        self._name, self._words = name, [str(word) for word in words]
        self._figures, self._seconds = figures, seconds
        self._answers: dict[str, Compiled | Refused] = {}

    def compiled(self, net: Net, op: Op) -> Compiled | Refused:
        text = subgraph_text(net, op, self._figures)
        if text not in self._answers:
            self._answers[text] = self._compile(text, op)
        return self._answers[text]

    def _compile(self, text: str, op: Op) -> Compiled | Refused:
        folder = Path(tempfile.mkdtemp(prefix=f"{self._name}-"))
        (folder / SUBGRAPH).write_text(text, encoding="utf-8")
        self._run(folder, op)
        answer = self._read(folder, op)
        shutil.rmtree(folder)
        return answer

    def _run(self, folder: Path, op: Op) -> None:
        command = [*self._words, SUBGRAPH, COMPILED]
        try:
            done = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=self._seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise self._wrong(folder, op, f"has not ended after {self._seconds:g} seconds") from error
        except OSError as error:
            raise self._wrong(folder, op, f"cannot be run: {error.strerror}") from error
        if done.returncode:
            words = (done.stderr or done.stdout).decode(errors="replace").strip()[-LAST_WORDS:]
            raise self._wrong(folder, op, f"failed with status {done.returncode}: {words or 'it said nothing'}")

    def _read(self, folder: Path, op: Op) -> Compiled | Refused:
        try:
            text = (folder / COMPILED).read_bytes()
        except OSError as error:
            raise self._wrong(folder, op, f"has ended well, but left no {COMPILED}") from error
        try:
            return (Refused if b'"refusal"' in text else Compiled).model_validate_json(text)
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"])) or "the file"
            raise self._wrong(folder, op, f"left nonsense in {COMPILED}: {where}: {fault['msg']}") from error

    def _wrong(self, folder: Path, op: Op, what: str) -> NpukitError:
        command = f"cd {folder} && {shlex.join([*self._words, SUBGRAPH, COMPILED])}"
        return NpukitError(
            f"the network compiler of {self._name} {what}; it had to compile {op.name} ({op.title})",
            tries=[command, "docs/accelerators.md says what it reads and writes", "--engine cpu"],
        )
