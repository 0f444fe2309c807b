"""The worker process: imports, compilation and cache of the core, end together with the parent process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from emulator.programs import program, resident_bytes, running
from npukit.emulator.here import INSTALL
from npukit.emulator.process import WorkerProcess, death
from npukit.errors import NpukitError
from npukit.host.budget import EMULATOR, LIMITS_VARIABLE, TRUSTED
from oracles.dma_model import DRAM

LOOP = '#include "board.h"\nint main(void) { for (;;) { RESULTS[0]++; } }'
_MEBIBYTE = 1 << 20
KIT = str(Path(__file__).resolve().parents[2] / "kit")


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": KIT, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_imports_no_tvm_and_the_kit_imports_no_unicorn() -> None:
    worker = python("import sys, npukit_emulator.__main__; print('tvm' in sys.modules, 'unicorn' in sys.modules)")
    assert worker.stdout.split() == ["False", "True"]
    kit = python(
        "import sys, npukit.emulator.builtin; "
        "print('unicorn' in sys.modules, any(name.startswith('npukit_emulator') for name in sys.modules))"
    )
    assert kit.stdout.split() == ["False", "False"]


@pytest.mark.exhaustive
def test_the_core_is_compiled_once_and_kept(tmp_path: Path) -> None:
    code = "from npukit_emulator.compiler import core_library; print(core_library())"
    first = python(code, XDG_CACHE_HOME=str(tmp_path))
    assert first.returncode == 0, first.stderr
    library = Path(first.stdout.strip())
    assert tmp_path in library.parents
    made = library.stat().st_mtime_ns
    assert python(code, XDG_CACHE_HOME=str(tmp_path)).stdout == first.stdout
    assert library.stat().st_mtime_ns == made
    assert [path.name for path in library.parent.iterdir()] == [library.name]


def test_it_ends_with_its_parent() -> None:
    """Even in the middle of a run, and without a message from the parent."""
    code = f"""
import os, threading
from pathlib import Path
from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.project.images.image import Image
emulator = Emulator(load_board("pe-mesh"), [Image(Path({str(program(LOOP))!r}), (0,))])
print(emulator._worker._process.pid, flush=True)
threading.Timer(0.7, os._exit, (9,)).start()
emulator.read(60)
"""
    result = python(code)
    assert result.returncode == 9, result.stderr
    worker, until = int(result.stdout), monotonic() + 5
    while monotonic() < until and _lives(worker):
        sleep(0.05)
    assert not _lives(worker)


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_nonsense_is_answered_with_an_error() -> None:
    worker = WorkerProcess(EMULATOR)
    try:
        with pytest.raises(NpukitError, match="the board has not been set up"):
            worker.ask("run", until=None, stop_at_output=True, seconds=1)
    finally:
        worker.close()


def test_a_death_is_told_by_what_it_was() -> None:
    """A crash is the emulator's fault. Advice to install something appears only if something is missing."""
    crash, killed = death(-signal.SIGSEGV, ""), death(-signal.SIGKILL, "")
    gave_up = death(75, "out of memory")
    assert gave_up.message == "the emulator's worker process gave up: out of memory"
    assert "fewer PEs" in gave_up.tries
    missing, raised = death(1, "ModuleNotFoundError: No module named 'unicorn'"), death(1, "KeyError: 'pe'")
    assert crash.message == "the emulator crashed by SIGSEGV"
    assert "killed by SIGKILL" in killed.message
    assert "memory" in killed.facts[0]
    assert [any(each == INSTALL for each in error.tries) for error in (crash, killed, missing, raised)] == [
        *(False, False, True, False)
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel bounds other processes on Linux")
def test_it_has_the_memory_of_its_board_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a hundredth of the budget, less than the board's DRAM."""
    monkeypatch.setenv(LIMITS_VARIABLE, "0.01")
    with running((program(LOOP), (0,))) as emulator:
        emulator.run(1_000)
        with pytest.raises(NpukitError, match="the emulator's worker process gave up: out of memory") as raised:
            emulator.write_memory(DRAM, 0, b"1")
    assert TRUSTED in raised.value.tries


def test_without_the_emulators_package_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NpukitError, match="a package of its own, and not installed") as caught:
        WorkerProcess(EMULATOR)
    assert caught.value.tries == (INSTALL,)


def test_a_board_that_starts_again_gives_its_memory_back() -> None:
    """Above all the DRAM, which each start allocates anew."""
    with running((program(LOOP), (0,))) as emulator:
        emulator.write_memory(DRAM, 0, bytes([1]) * _MEBIBYTE)
        before = resident_bytes(emulator.worker_process_id)
        for _ in range(16):
            emulator._start()
            emulator.run(1_000)
            emulator.write_memory(DRAM, 0, bytes([1]) * _MEBIBYTE)
        assert resident_bytes(emulator.worker_process_id) - before < 8 * _MEBIBYTE


@pytest.mark.parametrize("asked", ["counters", "wait", "registers"])
@pytest.mark.parametrize("pe", [-1, 16, 0x8000_0000])
def test_what_is_asked_of_a_pe_that_is_not_there_is_refused(asked: str, pe: int) -> None:
    with running((program(LOOP), (0,))) as emulator:
        with pytest.raises(NpukitError, match=f"has 16 PEs and no PE {pe}"):
            emulator._worker.ask(asked, pe=pe)
        assert emulator.read(0.1) == b""


def test_a_reply_that_was_not_waited_for_is_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = WorkerProcess(EMULATOR)

    def stopped(_: WorkerProcess) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(WorkerProcess, "_receive", stopped)
    with pytest.raises(KeyboardInterrupt):
        worker.ask("nothing of the kind")
    monkeypatch.undo()
    with pytest.raises(NpukitError, match="the emulator has been closed"):
        worker.ask("memory")
