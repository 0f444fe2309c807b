"""A user's mapping of ops to PEs, from a file or a mapper in Python.

A mapping covers every op or some. `plan/planner.py` completes it. `docs/mesh.md` is the manual.
"""

from __future__ import annotations

import json
import tomllib
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from npukit.accel.interface import Accelerator
from npukit.board.board import UNKNOWN_KEY, Board
from npukit.errors import NpukitError, nearest
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.receptive import cuttable_axes, may_be_one
from npukit.plan.ir.assignment import Assignment, Tile, fault_of, pes_of
from npukit.plan.layout.k_split import cut_as_wanted
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import pes_in_order

GROUP = "npukit.mappers"
"""The group of entry points of mappers."""

SUFFIXES = (".toml", ".json")

Mapper = Callable[[Graph, Board, Sequence[int]], Mapping[str, Sequence[Tile]]]
"""A mapper: from a net, a board and the live PEs in order to the tiles of every op or of some."""


class TilePin(BaseModel, extra="forbid", frozen=True):
    """A box of an op's output, and the PE that computes it."""

    pe: int
    start: tuple[int, ...]
    stop: tuple[int, ...]


class OpPin(BaseModel, extra="forbid", frozen=True):
    """The PEs of an op: a list of tiles, or PEs with the number of `parts` along each axis of the output.

    Without `parts` the last axis with enough elements is cut: usually the channels. `sums`: the number of ops that
    replace the op, each with a sum over a part of the input channels (`net/passes/sums.py`); another op adds the sums.
    """

    pes: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()
    tiles: tuple[TilePin, ...] = ()
    sums: int = 1


class PinFile(BaseModel, extra="forbid", frozen=True):
    """A mapping file."""

    ops: dict[str, OpPin]


def pins_for(problem: Problem, source: str, objective: str) -> Assignment:
    """The pins of a source, checked against the objective and the permitted PEs. A source describes single frames."""
    if objective != "latency":
        raise NpukitError(
            f"plan {source} says where a frame's ops run, which --objective {objective} would change",
            tries=["--objective latency"],
        )
    pins = read_pins(source, problem.graph, problem.board)
    taken = {problem.board.root_pe, *pes_of(pins)}
    if problem.max_pes and len(taken) > problem.max_pes:
        raise NpukitError(
            f"plan {source} takes {len(taken)} PEs, the root's included, and --pes allows {problem.max_pes}",
            tries=[f"--pes {len(taken)}", "build without --pes"],
        )
    return pins


def read_pins(source: str, graph: Graph, board: Board) -> Assignment:
    """The tiles of a mapping file, or of the mapper of this name, checked against the net and the board."""
    live = pes_in_order(board)
    if source.endswith(SUFFIXES):
        ops = _read(Path(source)).ops.items()
        placed = {name: pin for name, pin in ops if pin.pes or pin.parts or pin.tiles or pin.sums < 2}
        pins = {name: _tiles(graph, name, pin, source) for name, pin in placed.items()}
    else:
        mapper = _mapper(source)
        with _errors_of(source):
            pins = {name: tuple(tiles) for name, tiles in mapper(graph, board, live).items()}
    for name, tiles in pins.items():
        op = _op(graph, name, source)
        if fault := fault_of(graph.shape(op.output), tiles, set(live)) or _fault_of_op(graph, board, op, tiles):
            raise _wrong(source, name, fault)
    return pins


def with_sums(net: Net, engines: Mapping[str, Accelerator], source: str) -> Net:
    """The net with ops cut along the input channels, by the file or by the mapper's `sums`."""
    if source.endswith(SUFFIXES):
        wanted = {name: pin.sums for name, pin in _read(Path(source)).ops.items() if pin.sums > 1}
    else:
        wanted = getattr(_mapper(source), "sums", {})
    for name in wanted:
        _op(Graph(net), name, source)
    return cut_as_wanted(net, engines, wanted)


def _fault_of_op(graph: Graph, board: Board, op: Op, tiles: Sequence[Tile]) -> str | None:
    """The first tile with a cut that no engine can compute, or on a PE without the op's engine; None if all are
    right."""
    allowed = cuttable_axes(graph.net, op)
    for tile in tiles:
        whole = zip(tile.box.shape, graph.shape(op.output), strict=True)
        cut = next((axis for axis, (part, size) in enumerate(whole) if part < size and axis not in allowed), None)
        if cut is not None:
            return f"the tile of PE {tile.pe} is cut along axis {cut}, which {op.kind} on {op.engine} cannot be"
        if not may_be_one(graph.net, op, tile.box):
            return f"the tile of PE {tile.pe} is cut along two axes, and has more than one position of the first"
    pe = next((tile.pe for tile in tiles if tile.pe in board.lacking.get(op.engine, ())), None)
    return None if pe is None else f"PE {pe} does not carry {op.engine}, which it runs on"


def _read(path: Path) -> PinFile:
    try:
        text = path.read_text(encoding="utf-8")
        tables: Any = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        return PinFile.model_validate(tables)
    except OSError as error:
        raise NpukitError(f"plan {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "the file"
        if fault["type"] == UNKNOWN_KEY:
            raise NpukitError(f"plan {path} has an unknown key: {where}", tries=["docs/mesh.md"]) from error
        raise NpukitError(f"plan {path} is wrong: {where}: {fault['msg']}", tries=["docs/mesh.md"]) from error
    except ValueError as error:
        raise NpukitError(f"plan {path} is not {path.suffix[1:].upper()}: {error}") from error


def _mapper(name: str) -> Mapper:
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise NpukitError(
            f"{name} is neither a plan ({' or '.join(SUFFIXES)}) nor a mapper that is installed ({known})",
            tries=["--plan FILE.toml", f"a package with an entry point in {GROUP}: docs/mesh.md"],
        )
    with _errors_of(name):
        return found[name].load()


@contextmanager
def _errors_of(mapper: str) -> Iterator[None]:
    """Turn an exception of a mapper into an error with the mapper's name and the line."""
    try:
        yield
    except NpukitError:
        raise
    except Exception as fault:
        place = traceback.extract_tb(fault.__traceback__)[-1]
        raise NpukitError(
            f"mapper {mapper} raised {type(fault).__name__} at {place.filename}:{place.lineno}: {fault}",
            tries=["-vv shows the way there", "build without --plan", "docs/mesh.md says what a mapper gives"],
        ) from fault


def _op(graph: Graph, name: str, source: str) -> Op:
    found = next((op for op in graph.ops if op.name == name), None)
    if found is None:
        known = [op.name for op in graph.ops]
        tries = [*nearest(name, known), f"one of: {', '.join(known)}"]
        raise NpukitError(f"plan {source}: the network has no op {name} that computes", tries=tries)
    return found


def _tiles(graph: Graph, name: str, pin: OpPin, source: str) -> tuple[Tile, ...]:
    shape = graph.shape(_op(graph, name, source).output)
    if pin.tiles and (pin.pes or pin.parts):
        raise _wrong(source, name, "it has tiles, and pes or parts besides")
    if pin.tiles:
        wrong = next((t for t in pin.tiles if not len(t.start) == len(t.stop) == len(shape)), None)
        if wrong:
            raise _wrong(source, name, f"the tile of PE {wrong.pe} has not the {len(shape)} axes of its output")
        return tuple(Tile(tile.pe, Box(tile.start, tile.stop)) for tile in pin.tiles)
    axis = next((axis for axis in reversed(range(len(shape))) if shape[axis] >= len(pin.pes)), len(shape) - 1)
    parts = pin.parts or tuple(len(pin.pes) if each == axis else 1 for each in range(len(shape)))
    if len(parts) != len(shape) or any(not 1 <= part <= size for part, size in zip(parts, shape, strict=False)):
        raise _wrong(source, name, f"parts {list(parts)} do not cut its output of {list(shape)}")
    boxes = to_boxes(grid(shape, tuple(parts), (1,) * len(shape)))
    if len(boxes) != len(pin.pes):
        raise _wrong(source, name, f"it is cut into {len(boxes)} parts for {len(pin.pes)} PEs")
    return tuple(Tile(pe, box) for pe, box in zip(pin.pes, boxes, strict=True))


def _wrong(source: str, op: str, fault: str) -> NpukitError:
    return NpukitError(f"plan {source}: {op}: {fault}", tries=["leave the op to npukit", "docs/mesh.md"])
