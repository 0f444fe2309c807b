"""Time limit for a target's answer."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from end_to_end.builds import DIGITS, shared_build
from npukit.link.conversation import NoAnswer
from npukit.link.session import ANSWER_SECONDS
from npukit.measure import target


class Silence:
    """A transport without any incoming bytes."""

    def write(self, data: bytes) -> None:
        del data

    def read(self, timeout: float) -> bytes:
        del timeout
        return b""

    def close(self) -> None:
        pass


@pytest.mark.parametrize("name", ["renode", "qemu"])
def test_how_long_a_program_may_take_does_not_depend_on_how_many_networks_are_asked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "build", pes=1)
    monkeypatch.setattr(target, "start", lambda *_: Silence())
    assert target.PROGRAM_SECONDS > ANSWER_SECONDS
    monkeypatch.setattr(target, "PROGRAM_SECONDS", 0.1)
    for opening in (target.open_target(made, name), target.open_targets({"one": made}, name)):
        began = monotonic()
        with pytest.raises(NoAnswer), opening:
            pass
        assert monotonic() - began < ANSWER_SECONDS / 2
