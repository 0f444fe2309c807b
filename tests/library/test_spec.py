"""`export --spec`: the memory contents equal the memory of a running build."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from end_to_end.builds import shared_build
from helpers import CHECKOUT
from npukit import api
from npukit.board.noc import DRAM
from npukit.errors import NpukitError
from npukit.library.spec import SPEC
from npukit.link.messages import DRAM_PE
from npukit.measure.target import open_target
from npukit.structs import WORD

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"


def read_memory(text: str) -> dict[int, bytes]:
    """Bytes of a memory image, by address."""
    found: dict[int, bytearray] = {}
    address = 0
    for line in text.split():
        if line.startswith("@"):
            address = WORD * int(line[1:], 16)
            found[address] = bytearray()
        else:
            found[address] += int(line, 16).to_bytes(WORD, "little")
    return {address: bytes(data) for address, data in found.items()}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("board", "options"), [("spinnaker2", {"pes": 4}), ("pe-mesh", {"objective": "throughput", "pes": 2})]
)
def test_a_frame_runs_by_what_the_spec_says_of_memory(board: str, options: dict[str, object], tmp_path: Path) -> None:
    built = shared_build(DIGITS, tmp_path / "out", board, **options)
    api.export_spec(built.folder, tmp_path / "spec")
    spec, plan, golden = json.loads((tmp_path / "spec" / SPEC).read_text()), built.plan(), built.golden()
    assert {pe.pe for pe in plan.pes} <= {each["pe"] for each in spec["active_pes"]}
    assert len(spec["mem_data_to_send"]) == len(spec["mem_regions_to_read"]) == plan.frames
    with open_target(built, None) as target:
        for pe, name in spec["mem_files"].items():
            if int(pe) != plan.pes[0].pe:
                for address, data in read_memory((tmp_path / "spec" / name).read_text()).items():
                    there = target.session.read_memory(address, len(data), int(pe))
                    same = np.frombuffer(there, np.uint8) == np.frombuffer(data, np.uint8)
                    assert np.mean(same) > 0.9, f"PE {pe} at {address:#x}: all but what the PE has written"
        for region in spec["mem_data_to_send"]:
            data = np.array(region["data"], "<u4").tobytes()
            target.session.write_memory(region["address"], data, DRAM_PE if region["pe"] >= DRAM else None)
        target.session.run()
        for frame, region in enumerate(spec["mem_regions_to_read"]):
            found = target.session.read_memory(region["address"], WORD * region["words"])
            wanted = golden["out0"][frame % len(golden["out0"])]
            assert found[: wanted.nbytes] == wanted.tobytes()


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    built = shared_build(DIGITS, tmp_path / "out", pes=1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(NpukitError, match="is there already"):
        api.export_spec(built.folder, tmp_path / "mine", force=True)
