"""A Net in a folder: `net.txt`, and `net.npz` with the arrays that the text refers to by digest."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from npukit.arrays import read_arrays
from npukit.errors import NpukitError
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.parse import parse_net
from npukit.net.text import print_net, stored_values

TEXT = "net.txt"
VALUES = "net.npz"


def save_net(net: Net, folder: Path) -> None:
    """Write a net to a folder. Equal nets give equal bytes."""
    (folder / TEXT).write_text(print_net(net), encoding="utf-8", newline="\n")
    values = stored_values(net)
    keys = {_key(index): values[name] for index, name in enumerate(values)}
    np.savez(folder / VALUES, allow_pickle=False, names=np.array(list(values), dtype=np.str_), **keys)


def load_net(folder: Path) -> Net:
    """Load and check a net written by `save_net`."""
    try:
        text = (folder / TEXT).read_text(encoding="utf-8")
        arrays = read_arrays(folder / VALUES)
        values = {str(name): arrays[_key(index)] for index, name in enumerate(arrays["names"])}
    except (OSError, ValueError, KeyError) as fault:
        raise NpukitError(f"{folder} holds no readable net: {fault}", tries=["build it again"]) from fault
    return check_net(parse_net(text, values))


def _key(index: int) -> str:
    """The archive name of a value. Tensor names may contain characters unsafe in file names."""
    return f"value_{index}"
