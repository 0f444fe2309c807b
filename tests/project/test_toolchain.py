from __future__ import annotations

import pytest

from npukit.errors import NpukitError
from npukit.project.toolchain import find_toolchain


def test_zig_comes_with_the_package() -> None:
    assert find_toolchain("zig").title.startswith("zig cc 0.")


def test_without_gcc_on_the_path_zig_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_toolchain().name == "zig"
    with pytest.raises(NpukitError, match="arm-none-eabi-gcc not found"):
        find_toolchain("gcc")


def test_an_unknown_toolchain_is_refused() -> None:
    with pytest.raises(NpukitError, match="toolchain icc is not known"):
        find_toolchain("icc")
