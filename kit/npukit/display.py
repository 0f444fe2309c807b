"""Figures as people read them, and results as HTML: notebooks show by it what has `_repr_html_`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

KB = 1024


def of_kilobytes(used: int, size: int) -> str:
    """The part of a memory that is used: `86 / 1024 KB`."""
    return f"{-(-used // KB)} / {size // KB} KB"


def milliseconds(cycles: int, clock_hz: int) -> str:
    """The time of so many cycles: `2.14 ms`."""
    return f"{1e3 * cycles / clock_hz:.3g} ms"


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A sentence and a table; numbers to the right."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<p><b>{escape(title)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<td style="text-align: right">{value:,}</td>'
    return f'<td style="text-align: left">{escape("" if value is None else str(value))}</td>'
