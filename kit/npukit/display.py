"""Figures for human readers, and results as HTML. Notebooks display objects with `_repr_html_`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

KB = 1024
IN_MODEL = "in the model"
_LONGEST_TITLE = 32


def of_kilobytes(used: int, size: int) -> str:
    """The used part of a memory: `86 / 1024 KB`."""
    return f"{-(-used // KB)} / {size // KB} KB"


def milliseconds(cycles: int, clock_hz: int) -> str:
    """A number of cycles as a time: `2.14 ms`."""
    return f"{1e3 * cycles / clock_hz:.3g} ms"


def shares(parts: Sequence[int]) -> list[float]:
    """The percentages of the parts of a whole, with one decimal. The sum is 100: rounding errors go to the parts most
    changed by rounding down."""
    whole = max(sum(parts), 1)
    tenths = [1000 * part // whole for part in parts]
    by_rest = sorted(range(len(parts)), key=lambda index: -(1000 * parts[index] % whole))
    for index in by_rest[: 1000 - sum(tenths)] if any(parts) else ():
        tenths[index] += 1
    return [tenth / 10 for tenth in tenths]


def thousands(value: int | None) -> str:
    """A number with separators: `12,345`; empty for None."""
    return "" if value is None else f"{value:,}"


def counted(instructions: int | None) -> str:
    """A number of instructions; None if the board has no counter."""
    return "instructions not counted" if instructions is None else f"{instructions:,} instructions"


def in_model(title: str) -> str:
    """A layer's name in the user's model, long names cut at the front: exporters' names are paths."""
    return title if len(title) <= _LONGEST_TITLE else f"…{title[1 - _LONGEST_TITLE :]}"


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A title and an HTML table, with numbers aligned to the right."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<p><b>{escape(title)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<td style="text-align: right">{value:,}</td>'
    return f'<td style="text-align: left">{escape("" if value is None else str(value))}</td>'


class Told(dict[str, Any]):
    """A JSON object for interactive use: keys are attributes too, and notebooks show a table of layers."""

    def __getattr__(self, key: str) -> Any:
        try:
            return self[key]
        except KeyError:
            raise AttributeError(key) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"<{self.model} on {self.board}: {self._predicted}; {', '.join(self)}>"

    def _repr_html_(self) -> str:
        return layers_table(self, self._predicted)

    @property
    def _predicted(self) -> str:
        return f"{self.pes_used} PEs, {self.predicted['latency_cycles']:,} cycles predicted"


def layers_table(summary: Mapping[str, Any], what: str) -> str:
    """The table of the layers of a build or a prediction, with `what` in its title."""
    rows = [
        (op["name"], in_model(op["title"]), op["op"], op["engine"], len(op["pes"]), op["predicted_cycles"])
        for op in summary["ops"]
    ]
    title = f"{summary['model']} on {summary['board']}: {what}"
    return table(title, ("layer", IN_MODEL, "op", "engine", "PEs", "predicted cycles"), rows)
