"""The proofs of `proofs.py`, and a mutant of each; `make formal` runs all mutants."""

from __future__ import annotations

import pytest

from helpers import first_of, needs
from rtl.proofs import PACKAGES, PROOFS, QUICK, RTL, Change, Proof
from rtl.prove import FAILED, PROGRAMS, PROVED, Task, changed, run, script, sources, tasks

NAMES = {proof.name: proof for proof in PROOFS}


@pytest.mark.parametrize("proof", PROOFS, ids=NAMES)
def test_files_and_replaced_texts_are_there(proof: Proof) -> None:
    texts = sources(Task(proof))
    assert len(texts) == len(PACKAGES) + len(proof.files) + (not proof.assertions.endswith(".svh"))
    assert f"module {proof.top}" in texts[f"{proof.top}.sv"]
    assert any("assert (" in text for text in texts.values())
    assert proof.mutants
    for mutant in proof.mutants:
        assert sources(Task(proof, mutant)) != texts, mutant


def test_each_file_of_assertions_is_of_a_proof() -> None:
    used = {name for proof in PROOFS for name in (f"formal/{proof.assertions}", *proof.files)}
    assert {f"formal/{path.name}" for path in (RTL / "formal").iterdir()} <= used


def test_a_text_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"a\.sv does not contain: c"):
        changed({"a.sv": "b"}, [Change("a.sv", "c", "d")])


def test_words_choose_proofs() -> None:
    assert {task.proof.name for task in tasks(["packet", "credits"])} == {"router"}
    assert [task.mutant for task in tasks(["arbiter"], mutants=False)] == [""]
    assert len(tasks([])) == len(PROOFS) + sum(len(proof.mutants) for proof in PROOFS)


def test_a_mutant_fails_behind_reset_not_in_the_step_alone() -> None:
    proof = NAMES["arbiter"]
    assert "-tempinduct -maxsteps 2" in script(Task(proof), [])
    assert "-tempinduct-baseonly -maxsteps 12" in script(Task(proof, next(iter(proof.mutants))), [])


@needs(*PROGRAMS)
@pytest.mark.parametrize("name", first_of([*NAMES], len(QUICK)))
def test_a_proof_holds(name: str) -> None:
    assert run(Task(NAMES[name])) == PROVED


@needs(*PROGRAMS)
@pytest.mark.parametrize("name", first_of([*NAMES], len(QUICK)))
def test_a_mutant_of_a_proof_fails(name: str) -> None:
    assert run(Task(NAMES[name], next(iter(NAMES[name].mutants)))) == FAILED
