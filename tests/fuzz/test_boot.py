"""Attacks on the loader, a few of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from boot.native import Device
from fuzz.boot import CUTS, FLASH, FORGED, LINE, TAMPERED, Attacks

EACH = 40


@pytest.mark.exhaustive
def test_no_attack_gets_through(tmp_path: Path) -> None:
    attacks = Attacks(16, tmp_path)
    attacks.run(EACH)
    attacks.run_on_noisy_lines(2)
    totals = {kind: outcomes.total() for kind, outcomes in attacks.outcomes.items()}
    assert totals == {TAMPERED: EACH, FORGED: EACH, FLASH: EACH, CUTS: EACH, LINE: 2}
    assert {"cut, old image", "cut, new image"} <= {*attacks.outcomes[CUTS]}


def test_a_loader_that_takes_anything_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attacks = Attacks(16, tmp_path)
    monkeypatch.setattr(Device, "put_on_trial", lambda *_, **__: 0)
    with pytest.raises(AssertionError, match="nobody signed"):
        attacks.run(1)
