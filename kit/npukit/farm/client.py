"""Boards of a farm, requested from a TVM tracker and measured in parallel, through TVM's RPC client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm import rpc

from npukit.errors import DoesNotFit, NpukitError
from npukit.farm.tracker import HostPort
from npukit.measure.bench import Bench


@dataclass(frozen=True)
class BoardBench:
    """Measurement of a board of a farm, over `frames` frames."""

    host: str
    on: str
    frames: int
    bench: Bench

    def to_json(self) -> dict[str, Any]:
        found = self.bench
        return {
            "host": self.host,
            "on": self.on,
            "frames": self.frames,
            "latency_cycles": found.latency_cycles,
            "interval_cycles": found.interval_cycles,
            "instructions": found.instructions,
        }


@dataclass(frozen=True)
class FarmBench:
    """Figures of all boards. The slowest board's figures stand for the farm."""

    boards: tuple[BoardBench, ...]

    @property
    def slowest(self) -> Bench:
        return max((board.bench for board in self.boards), key=lambda bench: bench.latency_cycles or 0)

    def to_json(self) -> dict[str, Any]:
        return {**self.slowest.to_json(), "boards": [board.to_json() for board in self.boards]}


def farm_bench(tracker: HostPort, key: str, build_id: str, frames: int) -> FarmBench:
    """Measure `frames` frames, spread over all free boards of the key; if none is free, on the first to become free."""
    with all_boards(tracker, key) as remotes:
        pass  # the boards stay reserved without the tracker
    abouts = [_about(remote, build_id) for remote in remotes]
    shares = [max(1, (frames + place) // len(remotes)) for place in range(len(remotes))]
    with ThreadPoolExecutor(len(remotes)) as pool:
        return FarmBench(tuple(pool.map(_measure, remotes, abouts, shares)))


@contextmanager
def all_boards(tracker: HostPort, key: str) -> Iterator[list[Any]]:
    """Sessions with all free boards of the key; if none is free, with the first to become free."""
    with _tracker(tracker) as session:
        yield [session.request(key) for _ in range(_free_boards(session, tracker, key))]


@contextmanager
def _tracker(address: HostPort) -> Iterator[Any]:
    address.check()
    session = rpc.connect_tracker(address.host, address.port)
    try:
        yield session
    except RuntimeError as error:
        raise NpukitError(f"the tracker at {address} gave no board: {error}") from error
    finally:
        session.close()


def _free_boards(session: Any, tracker: HostPort, key: str) -> int:
    summary = session.summary()
    servers = [server["key"].removeprefix("server:") for server in summary["server_info"]]
    if key not in servers:
        known = ", ".join(sorted(set(servers))) or "none"
        raise NpukitError(
            f"the tracker at {tracker} has no board of key {key} (its keys: {known})",
            tries=[f"npukit serve BUILD --on DEVICE --tracker {tracker} --key {key}"],
        )
    return max(1, summary["queue_info"].get(key, {}).get("free", 0))


def _about(remote: Any, build_id: str) -> dict[str, Any]:
    about = json.loads(remote.get_function("npukit.describe")())
    if about["build_id"] != build_id:
        raise DoesNotFit(
            f"the board at {about['host']}, {about['on']} serves build {about['build_id']} ({about['model']}), "
            f"not build {build_id}",
            tries=["--key of the boards that serve this build", "npukit serve this build there"],
        )
    return about


def _measure(remote: Any, about: dict[str, Any], frames: int) -> BoardBench:
    found = json.loads(remote.get_function("npukit.bench")(frames))
    return BoardBench(about["host"], about["on"], frames, Bench.from_json(found))
