"""Renode's languages as far as the templates use them. A text that fails to parse here is not known to work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_NUMBER = r"0x[0-9A-F]+|[0-9]+"
_POINT = re.compile(rf"sysbus new Bus\.BusPointRegistration {{ address: ({_NUMBER}); cpu: ({_NAME}) }}")
_ENTRY = re.compile(rf"({_NAME}): ({_NAME}\.{_NAME}) @ (.*)")
_ATTRIBUTE = re.compile(rf'    ({_NAME}): ({_NUMBER}|{_NAME}|"[^"]*")')
_WIRE = re.compile(rf"    ({_NAME}) -> ({_NAME})@([0-9]+)")


@dataclass
class Entry:
    """A peripheral: addresses by core, attributes, wires. `places` is None for a core."""

    type: str
    places: list[tuple[int, str]] | None
    attributes: dict[str, int | str] = field(default_factory=dict)
    wires: dict[str, tuple[str, int]] = field(default_factory=dict)
    references: list[str] = field(default_factory=list)


def parse_platform(text: str) -> dict[str, Entry]:
    """A .repl."""
    entries: dict[str, Entry] = {}
    entry: Entry | None = None
    for line in _joined(text):
        if found := _ENTRY.fullmatch(line):
            name, kind, where = found.groups()
            assert name not in entries, f"{name} is there twice"
            entry = entries[name] = Entry(kind, _places(where))
        else:
            assert entry is not None, line
            _add(entry, line)
    return entries


def _joined(text: str) -> Iterator[str]:
    """Lines without comments. A block in braces becomes a line."""
    code = re.sub(r"//[^\n]*", "", text)
    assert code.count("{") == code.count("}")
    whole = re.sub(r"@ {\s(.*?)\n    }", lambda m: "@ {" + re.sub(r"\s+", " ", m[1]) + " }", code, flags=re.S)
    return (line for line in whole.split("\n") if line.strip())


def _places(where: str) -> list[tuple[int, str]] | None:
    if where == "sysbus":
        return None
    if where == "none":
        return []
    parts = where[1:-1].split("; sysbus") if where.startswith("{") else [where]
    points = [part.strip() if part.strip().startswith("sysbus") else f"sysbus {part.strip()}" for part in parts]
    return [_place(point) for point in points]


def _place(point: str) -> tuple[int, str]:
    found = _POINT.fullmatch(point)
    assert found, f"no registration point: {point}"
    return int(found[1], 0), found[2]


def _add(entry: Entry, line: str) -> None:
    if found := _WIRE.fullmatch(line):
        entry.wires[found[1]] = found[2], int(found[3])
        return
    found = _ATTRIBUTE.fullmatch(line)
    assert found, f"neither an attribute nor a wire: {line!r}"
    name, value = found.groups()
    assert name not in entry.attributes, line
    entry.attributes[name] = value.strip('"') if not value[0].isdigit() else int(value, 0)
    if value[0].isalpha():
        entry.references.append(value)


SCRIPT_COMMANDS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\${_NAME}\?=(true|false|{_NUMBER}|\$ORIGIN/[\w./-]+)",
        r'mach create "[\w .-]+"',
        r"include \$ORIGIN/\w+\.cs",
        r"machine LoadPlatformDescription \$ORIGIN/board\.repl",
        r"emulation SetGlobalSerialExecution true",
        rf"sysbus LoadELF \${_NAME} cpu=sysbus\.{_NAME}",
        rf"sysbus LoadBinary \${_NAME} ({_NUMBER}) cpu=sysbus\.{_NAME}",
        rf"sysbus\.mesh LoadDram \${_NAME} ({_NUMBER})",
        r"macro reset",
        r'"""',
        r"runMacro \$reset",
        rf'emulation CreateLinkTerminal \${_NAME} "link" \${_NAME}',
        r"connector Connect sysbus\.uart link",
    )
)


def parse_script(text: str) -> list[str]:
    """The commands of a .resc. Checks that every variable is set before use."""
    commands = [line for line in (re.sub(r"\s*#.*", "", line).strip() for line in text.split("\n")) if line]
    assert commands.count('"""') == 2, "what is between them is what `macro` names"
    known = {"ORIGIN", "reset"}
    for command in commands:
        assert any(pattern.fullmatch(command) for pattern in SCRIPT_COMMANDS), f"unknown command: {command}"
        target, _, value = command.partition("?=")
        used = set(re.findall(rf"\$({_NAME})", value if value else command))
        assert used <= known, command
        if value:
            known.add(target[1:])
    return commands


STANDARD_KEYWORDS = frozenset(
    {
        *("Execute Command", "Start Emulation", "Test Teardown"),  # Renode's own
        *("Evaluate", "Fail", "Run Keyword And Return Status", "Should Be Equal As Integers"),
    }
)
_SECTIONS = ("Comments", "Settings", "Keywords", "Test Cases")
_SETTINGS = frozenset({"[Arguments]", "[Documentation]"})
_CONTROL = frozenset({"FOR", "END", "IF", "RETURN"})


@dataclass
class Suite:
    """Test cases and keywords of a .robot, each with the keywords called; and all the cells."""

    settings: dict[str, list[str]]
    keywords: dict[str, list[str]]
    tests: dict[str, list[str]]
    cells: list[str]


def parse_suite(text: str) -> Suite:
    suite, section, body = Suite({}, {}, {}, []), "", list[str]()
    for line in filter(str.strip, text.split("\n")):
        cells = re.split(r" {2,}", line.strip())
        suite.cells += cells
        if heading := re.fullmatch(r"\*\*\* (.*) \*\*\*", line):
            section = heading[1]
            assert section in _SECTIONS, line
        elif section == "Settings":
            suite.settings[cells[0]] = cells[1:]
        elif not line.startswith(" ") and section in ("Keywords", "Test Cases"):
            body = (suite.keywords if section == "Keywords" else suite.tests).setdefault(line, [])
        elif section in ("Keywords", "Test Cases"):
            body += _calls(cells)
    return suite


def _calls(cells: list[str]) -> list[str]:
    """The keywords called by a line."""
    rest = cells[1:] if re.fullmatch(r"\$\{\w+\}=", cells[0]) else cells
    if rest[0] in _SETTINGS or rest[0] in _CONTROL:
        return []
    return [rest[0], *(rest[1:2] if rest[0].startswith("Run Keyword") else [])]


def constructor_parameters(source: str, name: str) -> list[str]:
    """The names of a C# class's constructor parameters."""
    found = re.search(rf"public {name}\(([^)]*)\)", source)
    assert found, f"{name} has no constructor"
    return [part.split("=")[0].split()[-1] for part in found[1].split(",")]
