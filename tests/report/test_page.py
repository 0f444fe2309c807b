"""The report: figures equal the JSON's, and a browser shows the page without errors."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from end_to_end.builds import shared_build
from helpers import CHECKOUT
from npukit import api
from npukit.board.board import load_board
from npukit.cli.terminal import Terminal
from npukit.display import of_kilobytes
from npukit.measure.bench import Bench
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.frame_table import MESSAGES
from npukit.project.build_folder import Build
from npukit.report.gantt import CHART_ROWS, gantt
from npukit.report.layers import in_short
from npukit.report.mesh import mesh_picture
from npukit.report.page import keep_results, render, write_report
from npukit.report.sram import sram_maps

PES = 4
VOID = {"meta", "br"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Bench]:
    folder = tmp_path_factory.mktemp("digits") / "out"
    built = shared_build(CHECKOUT / "examples/digits/digits_int8.tflite", folder, pes=PES)
    return built, api.bench(folder, frames=1)


def results(bench: Bench) -> dict:
    assert bench.timeline is not None
    return {"bench": bench.to_json(), "gantt": asdict(gantt(bench.timeline))}


class Balance(HTMLParser):
    """Elements still open, and every reference to a place outside the page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.outside += [v for k, v in attrs if k in ("href", "src") and v and not v.startswith("#")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag, attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.exhaustive
def test_the_page_is_whole_and_stands_alone(measured: tuple[Build, Bench]) -> None:
    built, bench = measured
    page = render(built, results(bench))
    parser = Balance()
    parser.feed(page)
    assert not parser.open
    assert all(path.startswith("project/") for path in parser.outside)
    assert "<script" not in page


def test_the_figures_are_those_of_the_json(measured: tuple[Build, Bench]) -> None:
    built, bench = measured
    page = render(built, results(bench))
    assert f"<b>{bench.latency_cycles:,}</b><span>cycles of latency</span>" in page
    for layer in bench.layers:
        row = re.search(rf'<th scope="row">{layer.name}<br><small>{layer.title}</small></th>.*?</tr>', page, re.S)
        assert row is not None
        assert f'<td class="n wide">{layer.cycles:,}</td><td class="n wide">{layer.instructions:,}</td>' in row[0]


def test_flash_and_ram_are_apart(tmp_path: Path) -> None:
    built = shared_build(CHECKOUT / "examples/digits/digits_int8.tflite", tmp_path / "out", "mps2-an386")
    page = render(built, {})
    for region in built.manifest.summary["regions"]:
        assert f"{region['name']} of PE 0, {region['used']:,} of {region['size']:,} bytes" in page
        assert f"<b>{of_kilobytes(region['used'], region['size'])}</b><span>{region['name']}</span>" in page


def test_every_picture_says_what_it_is(measured: tuple[Build, Bench]) -> None:
    built, bench = measured
    page = render(built, results(bench))
    pictures = re.findall(r'<svg[^>]*>|<div class="(?:gantt|map|memory|stack)[^>]*>', page)
    assert len(pictures) > 4
    for picture in pictures:
        assert 'role="img"' in picture
        assert "aria-label=" in picture


def test_a_page_before_anything_is_measured(measured: tuple[Build, Bench]) -> None:
    built, _ = measured
    page = render(built, {})
    assert "cycles of latency, predicted" in page
    assert "One frame, PE by PE" not in page


def test_the_chart_has_every_pe_and_ends_with_the_frame(measured: tuple[Build, Bench]) -> None:
    built, bench = measured
    assert bench.timeline is not None
    chart = gantt(bench.timeline)
    assert [row.pe for row in chart.rows] == [pe.pe for pe in built.plan().pes]
    assert chart.cycles == bench.timeline.end
    assert max(bar.x + bar.width for row in chart.rows for bar in (*row.upper, *row.lower)) <= 1000.5


def test_a_chart_of_many_pes_shows_some(measured: tuple[Build, Bench]) -> None:
    _, bench = measured
    assert bench.timeline is not None
    piece = next(s for s in bench.timeline.slices if s.layer)
    many = replace(bench.timeline, slices=tuple(replace(piece, pe=pe) for pe in range(7296)))
    assert len(gantt(many).rows) == CHART_ROWS
    assert gantt(many).of == 7296


def test_the_traffic_of_the_mesh_is_that_of_the_messages(measured: tuple[Build, Bench]) -> None:
    built, _ = measured
    plan = built.plan()
    picture = mesh_picture(built.board, built.net(), plan, {pe.pe: 0.5 for pe in plan.pes})
    assert [cell.shade > 0 for cell in picture.cells] == [cell.pe in range(PES) for cell in picture.cells]
    assert max(arrow.weight for arrow in picture.arrows) == 1
    assert picture.busiest


def test_the_picture_of_a_board_of_chips(measured: tuple[Build, Bench]) -> None:
    built, _ = measured
    board = load_board("pe-mesh-7296")
    empty = Plan("none", board.name, "latency", ())
    picture = mesh_picture(board, built.net(), empty, {})
    assert len(picture.cells) == 152, "chips that do nothing are drawn as one"
    assert len(picture.chips) == 47
    assert len({(chip.x, chip.y) for chip in picture.chips}) == 47
    assert not any(chip.alike for chip in picture.chips)
    assert not picture.numbers
    full = mesh_picture(board, built.net(), replace(empty, chips=tuple(range(48))), {0: 0.5})
    assert [chip.title for chip in full.chips][:1] == ["chip 1, PEs 152 to 303: as chip 0"]
    assert all(chip.alike for chip in full.chips)


def test_many_frames_a_cycle_are_not_rounded_to_one(measured: tuple[Build, Bench]) -> None:
    built, _ = measured
    predicted = {"latency_cycles": 14514, "interval_cycles": 1}
    summary = {**built.manifest.summary, "frames": 21888, "predicted": predicted}
    page = render(replace(built, manifest=built.manifest.model_copy(update={"summary": summary})), {})
    assert "<b>0.66</b><span>cycles of interval, predicted</span>" in page
    hertz = built.board.core.clock_hz
    assert f"<b>{hertz / 14514 * 21888:,.0f}</b><span>frames a second" in page


def test_no_two_buffers_that_live_at_once_lie_on_each_other_in_the_map(measured: tuple[Build, Bench]) -> None:
    built, _ = measured
    for shown in sram_maps(built.plan()):
        assert shown.blocks
        assert all(block.y + block.height <= 160.1 for block in shown.blocks)


@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_shows_it_without_complaint(measured: tuple[Build, Bench], tmp_path: Path, dark: bool) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on PATH")
    built, bench = measured
    page = tmp_path / "report.html"
    page.write_text(render(built, results(bench)))
    shot = tmp_path / "shot.png"
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--enable-logging=stderr",
    ]
    flags += [f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={shot}", "--window-size=1200,2000"]
    flags += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
    done = subprocess.run([browser, *flags, page.as_uri()], capture_output=True, text=True, timeout=120, check=False)
    assert shot.is_file(), done.stderr
    assert "CONSOLE" not in done.stderr


def test_a_report_in_a_folder_of_somebody_else_is_not_a_fault(
    measured: tuple[Build, Bench], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    keep_results(measured[0], Terminal(as_json=False, verbosity=0), validation={})
    said = capsys.readouterr().err
    assert "the report stays as it was: cannot write to" in said
    assert "Permission denied" in said


@pytest.mark.exhaustive
def test_the_report_has_what_python_found(tmp_path: Path) -> None:
    built = shared_build(CHECKOUT / "examples/digits/digits_int8.tflite", tmp_path / "out", pes=PES)
    api.validate(built, cases=1)
    api.bench(built, frames=1)
    assert json.loads((built.folder / "results.json").read_text()).keys() == {"validation", "bench", "gantt"}
    assert "One frame, PE by PE" in (built.folder / "report.html").read_text()


def test_results_join_what_is_known(measured: tuple[Build, Bench]) -> None:
    built, bench = measured
    write_report(built, **results(bench))
    validation = {"engine": "emulator", "cases": 1, "outputs_equal": True, "mismatches": [], "layers_checked": 9}
    page = write_report(built, validation={**validation, "tiles_checked": 30}).read_text()
    assert "every byte equal" in page
    assert "One frame, PE by PE" in page
    assert json.loads((built.folder / "results.json").read_text()).keys() == {"bench", "gantt", "validation"}


def test_a_result_that_no_page_can_show_goes_alone(measured: tuple[Build, Bench]) -> None:
    built, bench = measured
    write_report(built, **results(bench))
    path = built.folder / "results.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "validation": {"cases": []}}))
    page = write_report(built).read_text()
    assert "One frame, PE by PE" in page
    assert json.loads(path.read_text()).keys() == {"bench", "gantt"}


def test_the_sentence_says_what_takes_most_and_what_helps(measured: tuple[Build, Bench]) -> None:
    built, bench = measured
    told = in_short(built.manifest.summary, bench.to_json())
    assert bench.frame is not None
    spent = bench.frame
    most = max(spent, key=lambda name: spent[name])
    assert told.startswith(f"{most} takes the largest part of a frame: {spent[most]:,} cycles, ")
    assert told in render(built, results(bench))
    crowded = [{"name": MESSAGES, "cycles": 90}, {"name": "conv2d_0", "cycles": 10}]
    waiting = in_short(built.manifest.summary, {**bench.to_json(), "frame": crowded})
    assert waiting.startswith(f"{MESSAGES.capitalize()} takes most of a frame: 90 cycles, 90 %; --objective throughput")
    assert in_short(built.manifest.summary, None).endswith(", as predicted.")
    softmax = [{"name": "softmax_0", "cycles": 90}, {"name": MESSAGES, "cycles": 10}]
    slow = in_short(built.manifest.summary, {**bench.to_json(), "frame": softmax})
    assert slow.startswith(
        "softmax_0 takes most of a frame: 90 cycles, 90 %, on the core: the MAC array has no softmax"
    )
    assert slow.endswith(". Waiting for messages takes 10 (10 %).")
    uncounted = replace(bench, latency_cycles=None, frame=None).to_json()
    assert in_short(built.manifest.summary, uncounted) == ""


def test_a_batch_is_called_one(measured: tuple[Build, Bench]) -> None:
    built, bench = measured
    summary = {**built.manifest.summary, "frames": 16}
    rounds = replace(built, manifest=built.manifest.model_copy(update={"summary": summary}))
    page = render(rounds, results(bench))
    assert "One batch of 16 frames, PE by PE" in page
    assert f"<b>{bench.interval_cycles:,}</b><span>cycles of interval</span>" in page


def test_a_page_of_a_board_without_accelerators_is_silent_about_them(tmp_path: Path) -> None:
    built = shared_build(CHECKOUT / "examples/digits/digits_int8.tflite", tmp_path / "out", board="mps2-an386")
    assert "accelerator" not in re.sub(r"<style>.*?</style>|no accelerator;", "", render(built, {}), flags=re.S)


def test_the_share_of_right_labels_is_a_figure(measured: tuple[Build, Bench]) -> None:
    built, _ = measured
    known = {"engine": "emulator", "cases": 4, "outputs_equal": True, "mismatches": [], "paths_equal": True}
    page = render(built, {"validation": {**known, "layers_checked": 1, "tiles_checked": 1, "accuracy": 0.75}})
    assert "<b>75.0%</b><span>of the labels right</span>" in page


def test_names_of_a_strangers_model_are_text(tmp_path: Path) -> None:
    """A narrow table may break a name after a slash."""
    built = shared_build(CHECKOUT / "examples/digits/digits_int8.tflite", tmp_path / "out", pes=PES)
    built.manifest.summary["ops"][0]["title"] = "stem/<script>/Relu"
    assert "<small>stem/<wbr>&lt;script&gt;/<wbr>Relu</small>" in render(built, {})
