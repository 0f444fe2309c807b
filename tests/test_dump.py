"""A dump has the Relax module, the net after each pass, the plan, and the candidates of the search."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers import CHECKOUT
from npukit.cli.main import app
from npukit.dump import CANDIDATES, dumped, dumping
from npukit.errors import NpukitError
from npukit.passes import OWN, PLACING, SIMPLIFYING

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"


@pytest.mark.exhaustive
def test_a_build_leaves_all_that_lies_between(tmp_path: Path) -> None:
    dump, out = tmp_path / "dump", tmp_path / "out"
    options = ["--pes=2", "--objective=throughput", "--toolchain=zig", "--quiet"]
    found = CliRunner().invoke(app, ["build", str(DIGITS), f"--output={out}", f"--dump={dump}", *options])
    assert found.exit_code == 0, found.output
    assert "R.dequantize(" in (dump / "relax.py").read_text()
    nets = ["imported", *(each.name for each in (*OWN, *SIMPLIFYING, *PLACING))]
    for number, name in enumerate(nets):
        assert (dump / f"net-{number:02}-{name}.txt").read_text().startswith("net digits_int8\n")
    assert (dump / "plan.txt").read_text().startswith('plan digits_int8 on "pe-mesh" for throughput')
    lines = (dump / CANDIDATES).read_text().splitlines()
    assert lines
    assert all(line.startswith("groups: ") for line in lines)
    again = CliRunner().invoke(app, ["build", str(DIGITS), f"--output={out}", f"--dump={dump}", *options])
    assert again.exit_code == 1
    assert "is not empty" in again.output


def test_nothing_is_made_without_a_dump(tmp_path: Path) -> None:
    def never() -> str:
        raise AssertionError("text of a dump that nothing asked for")

    with dumping(None):
        dumped("a.txt", never)
    dumped("a.txt", never)
    with dumping(tmp_path):
        dumped("a.txt", lambda: "text")
    assert (tmp_path / "a.txt").read_text() == "text"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NpukitError, match="cannot be a dump's folder"), dumping(tmp_path / "file"):
        pass
