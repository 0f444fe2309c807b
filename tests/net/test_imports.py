"""Modules for nets import without TVM: some processes must start at once, others must not load TVM."""

from __future__ import annotations

import subprocess
import sys

import pytest

from helpers import CHECKOUT


@pytest.mark.parametrize("module", ["npukit.net.store", "npukit.net.reference", "npukit.net.check"])
def test_tvm_stays_out(module: str) -> None:
    code = f"import sys, {module}; sys.exit('tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT / "kit", timeout=60, check=False).returncode == 0
