"""Results as HTML, for notebooks: what has `_repr_html_` is shown by it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A sentence and a table; numbers to the right."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<p><b>{escape(title)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<td style="text-align: right">{value:,}</td>'
    return f'<td style="text-align: left">{escape("" if value is None else str(value))}</td>'
