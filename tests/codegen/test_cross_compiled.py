"""The generated C gives no warnings with both cross compilers, and its constants have the announced size."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from codegen.host import FIRMWARE, write_files
from codegen.random_ops import MAKERS, Bundle
from helpers import toolchain
from net.small_nets import op_net, quantized
from npukit.accel.engines import assign_engines, engines_of
from npukit.board.board import load_board
from npukit.board.cores import CORES
from npukit.codegen.generate import generate
from npukit.codegen.sources import Sources
from npukit.net.net import Net
from npukit.net.ops import Conv2d
from npukit.plan.planner import plan_network
from npukit.project.toolchain import Toolchain


def _every_kind() -> Net:
    bundle = Bundle(np.random.default_rng(11))
    for make in MAKERS.values():
        make(bundle)
    return bundle.net()


def _wide_layer() -> Net:
    """A layer large enough to be divided between PEs."""
    weights = np.random.default_rng(12).integers(-127, 128, (64, 3, 3, 32)).astype(np.int8)
    output = quantized("y", (1, 24, 24, 64), 0.5)
    filters = quantized("w", weights.shape, 0.01)
    return op_net(Conv2d(padding=(1, 1, 1, 1)), [quantized("x", (1, 24, 24, 32), 0.1, 4)], output, {filters: weights})


def _sources(net: Net, board_name: str, pes: int) -> list[Sources]:
    board = load_board(board_name)
    engines = engines_of(board)
    placed = assign_engines(net, engines)
    return generate(placed, plan_network(placed, board, engines, max_pes=pes), board, engines, bytes(16))


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
@pytest.mark.parametrize(("board", "pes"), [("mps2-an386", 1), ("pe-mesh", 4)])
def test_no_warnings_and_the_size_that_was_said(compiler: str, board: str, pes: int, tmp_path: Path) -> None:
    """A static assertion in the C checks the size."""
    net = _every_kind() if pes == 1 else _wide_layer()
    programs = _sources(net, board, pes)
    assert sorted(pe for sources in programs for pe in sources.pes) == list(range(pes))
    for sources in programs:
        folder = tmp_path / str(sources.role)
        folder.mkdir()
        write_files(sources.files, folder)
        assert not sources.constant_bytes or f"== {sources.constant_bytes}," in sources.files["memory.h"]
        for path in sorted(folder.glob("*.c")):
            _compile(toolchain(compiler), path)


def _compile(with_toolchain: Toolchain, path: Path) -> None:
    folders = [path.parent, *(FIRMWARE / name for name in ("include", "libc", "mac_array", "noc", "rpc"))]
    includes = [PurePosixPath(folder.as_posix()) for folder in folders]
    source, output = PurePosixPath(path.name), path.with_suffix(".o")
    command = with_toolchain.compile_command(CORES["cortex-m4f"], source, "speed", includes, path.parent, output)
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
