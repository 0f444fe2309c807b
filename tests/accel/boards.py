"""Board files for tests of plug-ins: a board of npukit with an accelerator added."""

from __future__ import annotations

from pathlib import Path

from npukit.data import data_folder


def with_accelerator(folder: Path, board: str, *lines: str, own: bool = False) -> str:
    """The path of a board file in `folder`: `board` with the accelerator in `lines`, and with the board's own
    accelerators if `own`."""
    text = (data_folder("boards") / f"{board}.toml").read_text()
    kept = text if own else text.partition("[[accelerator]]")[0]
    path = folder / "board.toml"
    path.write_text("\n".join((kept, "[[accelerator]]", *lines, "")))
    return str(path)
