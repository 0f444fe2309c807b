"""A plan of faults: errors to inject into an emulated board, to check that they are noticed.

A TOML or JSON file, the same run every time:

    seed = 7
    [[fault]]
    kind = "drop"      # or duplicate, delay, flip: a packet
    message = 12       # number in the plan; or from = 0, to = 5: the PEs
    packet = 2         # the third match; or chance = 0.001, for each match, by the seed
    [[fault]]
    kind = "kill pe"   # or kill link, stall dma, flip sram, cut power
    pe = 5
    at = 100_000       # the cycle; or with a packet, as above
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.plan.tensors.routes import Routes

Kind = Literal["drop", "duplicate", "delay", "flip", "kill pe", "kill link", "stall dma", "flip sram", "cut power"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds in the order of `enum injection_kind` in npukit_emulator/core/harm.h."""
_NEEDS: dict[Kind, tuple[str, ...]] = {
    "delay": ("cycles",),
    "kill pe": ("pe",),
    "kill link": ("between",),
    "stall dma": ("pe", "cycles"),
    "flip sram": ("pe", "address", "bit"),
}
_OF_PACKETS: tuple[Kind, ...] = ("drop", "duplicate", "delay", "flip")
_ON_LINKS: tuple[Kind, ...] = ("drop", "duplicate", "flip")
_BITS_OF_A_BYTE = 8
_SEEDS = (1 << 32) - 1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Fault(_Part):
    """A fault and its trigger: `at` a cycle, at a `packet`, or at any packet with the probability `chance`.

    Packets are descriptors of the DMA in the order of departure, counted from 0. `source`, `destination` and `message`
    (the number in the plan) select among the packets. A message without trigger stands for its first packet.
    `hop`: number of the struck link on the packet's way, modulo the links of the way; without it the last. `part`:
    number of the struck packet of the message, in the words of the hardware manual, modulo its packets; without it the
    last.
    """

    kind: Kind
    at: int | None = Field(None, ge=0)
    packet: int | None = Field(None, ge=0)
    chance: float | None = Field(None, gt=0, lt=1)
    source: int | None = Field(None, alias="from")
    destination: int | None = Field(None, alias="to")
    message: int | None = Field(None, ge=0)
    pe: int | None = None
    between: tuple[int, int] | None = None
    cycles: int | None = Field(None, gt=0)
    address: int | None = Field(None, ge=0)
    bit: int | None = Field(None, ge=0)
    hop: int | None = Field(None, ge=0)
    part: int | None = Field(None, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _first_of_a_message(cls, fields: Any) -> Any:
        first = isinstance(fields, dict) and "message" in fields and not {"at", "packet", "chance"} & fields.keys()
        return {**fields, "packet": 0} if first else fields

    @model_validator(mode="after")
    def _is_whole(self) -> Fault:
        if sum(when is not None for when in (self.at, self.packet, self.chance)) != 1:
            raise ValueError("say when: one of at, packet, chance")
        if self.kind in _OF_PACKETS and self.at is not None:
            raise ValueError(f"{self.kind} happens to a packet: say which by packet or chance")
        for name in _NEEDS.get(self.kind, ()):
            if getattr(self, name) is None:
                raise ValueError(f"{self.kind} needs {name}")
        named = next((name for name in ("hop", "part") if getattr(self, name) is not None), None)
        if named and self.kind not in _ON_LINKS:
            raise ValueError(f"{self.kind} happens on no link: it has no {named}")
        return self

    def for_worker(self, board: Board) -> dict[str, int]:
        """The fault in the worker's format: `struct injection`."""
        self._check(board)
        pe, other = self.between or (self.pe, None)
        fields = {
            **{name: getattr(self, name) for name in ("at", "packet", "cycles", "address", "bit", "hop", "part")},
            "source": self.source,
            "destination": self.destination,
            "tag": self.message,
            "pe": pe,
            "other": other,
            "chance": None if self.chance is None else max(int(self.chance * _SEEDS), 1),
        }
        return {"kind": _KINDS.index(self.kind)} | {name: value for name, value in fields.items() if value is not None}

    def _check(self, board: Board) -> None:
        pes = (self.pe, *(self.between or ()))
        unknown = next((pe for pe in pes if pe is not None and not 0 <= pe < board.pe_count), None)
        if unknown is not None:
            raise NpukitError(f"the plan of faults names PE {unknown}, and {board.name} has {board.pe_count} PEs")
        if self.between and len(Routes(board).path(*self.between)) != 1:
            first, second = self.between
            raise NpukitError(f"the plan of faults names a link of PE {first} and PE {second}, which are no neighbours")
        sram_bytes = board.memory[0].size
        outside = (self.address or 0) >= sram_bytes or (self.bit or 0) >= _BITS_OF_A_BYTE
        if self.kind == "flip sram" and outside:
            raise NpukitError(
                f"the plan of faults flips bit {self.bit} of the byte at {self.address:#x}:"
                f" a byte has bits 0 to 7, and the SRAM has {sram_bytes} bytes"
            )


class FaultPlan(_Part):
    """All faults of one run. The same plan on the same build gives the same run."""

    seed: int = Field(1, ge=0, le=_SEEDS)
    fault: tuple[Fault, ...] = ()

    def for_worker(self, board: Board) -> dict[str, Any]:
        return {"seed": self.seed, "injections": [fault.for_worker(board) for fault in self.fault]}


def load_fault_plan(path: Path) -> FaultPlan:
    """The plan in a TOML file, or in a JSON file with the same fields."""
    try:
        text = path.read_text(encoding="utf-8")
        return FaultPlan.model_validate(json.loads(text) if path.suffix == ".json" else tomllib.loads(text))
    except OSError as error:
        raise NpukitError(f"plan of faults {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise NpukitError(f"plan of faults {path} is not TOML or JSON: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise NpukitError(
            f"plan of faults {path} is wrong: {where}: {first['msg']}", tries=["docs/emulators.md"]
        ) from error
