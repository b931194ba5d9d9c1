"""Lookups: compared with the texts beside the golden indexes, and with each other in all their forms."""

import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy
import pytest

import symdex
from conftest import GOLDEN

# name, file, line, inlined, function start, table; None for what is not there.
Row = tuple[str | None, str | None, int | None, bool, int | None, str]

Policy = Literal["exact", "statement"]
POLICIES: list[Policy] = ["exact", "statement"]
RANGE = re.compile(r"  0x([0-9a-f]+)\.\.0x([0-9a-f]+)")
TEXT = r'(-|"(?:[^"\\]|\\.)*")'
FRAME = re.compile(rf"    {TEXT}(?: = {TEXT})? {TEXT}:(-|\d+) function (-|0x[0-9a-f]+) (\w+)( inlined)?")


def test_frames_are_pickled_and_copied() -> None:
    index = symdex.Index.open(next(path for path in GOLDEN if path.name == "icf-1.symdex"))
    frames = index.lookup(0x3EB)
    assert len(frames) == 2 and frames[0].inlined
    assert pickle.loads(pickle.dumps(frames)) == frames and copy.copy(frames[0]) == frames[0]
    assert {frames[0]: 1}[copy.deepcopy(frames[0])] == 1 and frames[0] != frames[1]
    with pytest.raises(ValueError, match='no table "other"'):
        symdex.Frame(None, None, None, False, None, "other")  # type: ignore[arg-type]


def text(quoted: str) -> str | None:
    """A string of the texts, which has bytes that are not UTF-8 as \\xNN."""
    if quoted == "-":
        return None
    escaped = re.sub(rb"\\x([0-9a-f]{2})", lambda byte: bytes([int(byte[1], 16)]), quoted[1:-1].encode())
    return escaped.decode(errors="replace")


def row_of_text(line: str) -> Row:
    found = FRAME.fullmatch(line)
    assert found is not None, line
    name, readable, file, number, start, table, inlined = found.groups()
    # An index can have the readable names, too.
    assert readable is None or text(readable) == symdex.demangle(text(name) or "")
    function_start = None if start == "-" else int(start, 16)
    return text(name), text(file), None if number == "-" else int(number), inlined is not None, function_start, table


def row_of_frame(frame: symdex.Frame) -> Row:
    return frame.name, frame.file, frame.line, frame.inlined, frame.function_start, frame.table


def ranges(path: Path) -> Iterator[tuple[bool, range, dict[str, list[Row]]]]:
    """The ranges in the text of an index: whether it is one of debug information, and its frames by line policy."""
    is_of_dwarf, frames = False, dict[str, list[Row]]()
    for line in path.with_suffix(".txt").read_text().splitlines():
        if " chunk " in line:
            is_of_dwarf = line.startswith("dwarf")
        elif found := RANGE.fullmatch(line):
            frames = {"exact": [], "statement": []}
            policy = "exact"
            yield is_of_dwarf, range(int(found[1], 16), int(found[2], 16)), frames
        elif line == "   statement":
            policy = "statement"
        elif line.startswith("    ") and not line.startswith("    alias "):
            frames[policy].append(row_of_text(line))


def expected_answers(path: Path, policy: Policy) -> dict[int, list[Row]]:
    """The answers of an index at the first and the last offset of each range, by its text."""
    answers: dict[int, list[Row]] = {}
    all_ranges = list(ranges(path))
    of_dwarf = [span for is_of_dwarf, span, _ in all_ranges if is_of_dwarf]
    for is_of_dwarf, span, frames in all_ranges:
        rows = frames[policy] or frames["exact"]
        for offset in (span[0], span[-1]):
            # Debug information answers first.
            if is_of_dwarf or not any(offset in other for other in of_dwarf):
                answers[offset] = rows
    return answers


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_answers_are_those_of_the_golden_texts(path: Path, policy: Policy) -> None:
    index = symdex.Index.open(path)
    expected = expected_answers(path, policy)
    assert len(expected) >= 10
    found = index.lookup_many(expected, lines=policy)
    for (offset, rows), frames in zip(expected.items(), found, strict=True):
        assert [row_of_frame(frame) for frame in frames] == rows, hex(offset)
        assert index.lookup(offset, lines=policy) == frames


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_all_forms_of_offsets_and_answers_agree(path: Path) -> None:
    index = symdex.Index.from_bytes(path.read_bytes())
    known = list(expected_answers(path, "statement"))
    # With repetitions and gaps, in no order.
    end = index.metadata.image_size + 64
    offsets = [(number * 7919) % end for number in range(500)] + known[::-1] + [0, 0, 2**64 - 1]
    answers = [index.lookup(offset) for offset in offsets]
    assert any(answers) and not all(answers)
    assert index.lookup_many(offsets) == answers
    assert index.lookup_many(iter(offsets)) == answers
    assert index.lookup_many(numpy.array(offsets, dtype=numpy.uint64)) == answers
    assert index.lookup_many(numpy.array(offsets, dtype=numpy.uint64)[::-1]) == answers[::-1]
    signed = numpy.array(offsets[:-1], dtype=numpy.int64)
    assert index.lookup_many(signed) == answers[:-1]
    assert index.lookup_many(signed.astype(numpy.int32)) == answers[:-1]
    assert index.lookup_many(signed.astype(">i8")) == answers[:-1]
    columns = index.lookup_columns(offsets)
    assert len(columns) == columns.starts[-1] == len(columns.line)
    assert len(columns.starts) == len(offsets) + 1
    of_columns = [
        (
            columns.functions[columns.name[row]] if columns.name[row] >= 0 else None,
            columns.names[columns.name[row]] if columns.name[row] >= 0 else None,
            columns.files[columns.file[row]] if columns.file[row] >= 0 else None,
            columns.line[row] if columns.line[row] >= 0 else None,
            columns.inlined[row] == 1,
            columns.function_start[row] if columns.function_start[row] >= 0 else None,
            columns.has_debug_information[row] == 1,
        )
        for row in range(len(columns))
    ]
    starts = numpy.asarray(columns.starts)
    assert starts.dtype == numpy.int64 and numpy.asarray(columns.name).dtype == numpy.int32
    for place, frames in enumerate(answers):
        rows = [
            (f.function, f.name, f.file, f.line, f.inlined, f.function_start, f.table == "dwarf") for f in frames
        ]
        assert of_columns[starts[place] : starts[place + 1]] == rows


def test_no_offsets(index: symdex.Index) -> None:
    assert index.lookup_many([]) == []
    columns = index.lookup_columns(numpy.array([], dtype=numpy.int64))
    assert len(columns) == 0 and list(columns.starts) == [0] and list(numpy.asarray(columns.line)) == []


def test_wrong_offsets(index: symdex.Index) -> None:
    with pytest.raises(OverflowError, match="-1 is negative"):
        index.lookup_many(numpy.array([-1]))
    with pytest.raises(OverflowError):
        index.lookup_many([2**64])
    with pytest.raises(OverflowError):
        index.lookup(-1)
    with pytest.raises(TypeError):
        index.lookup_many([1.5])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        index.lookup_many(numpy.array([1.5]))
    with pytest.raises(ValueError, match="2 dimensions, expected 1"):
        index.lookup_many(numpy.zeros((2, 2), dtype=numpy.int64))
    with pytest.raises(ValueError, match='lines="best" is unknown; expected one of "statement", "exact"'):
        index.lookup(0, lines="best")  # type: ignore[arg-type]


def test_frames(index: symdex.Index) -> None:
    offset = index.image_offset(0x104A343D0, 0x104A34000, return_address=True)
    assert offset == 0x3CF
    frames = index.lookup(offset)
    assert repr(frames[0]) == "<Frame cell at /src/symdex/inline/level/../grid.h:9 [inlined]>"
    assert {frame: True for frame in frames} == {frame: True for frame in index.lookup(0x3CF)}
    assert index.image_offset(0x104A343D0, 0x104A34000, return_address=False) == 0x3D0
    assert index.image_offset(1, 2, return_address=False) is None
    start = frames[-1].function_start
    assert start is not None and index.function_names(start) == ["pyramid"]


def test_metadata(index: symdex.Index) -> None:
    metadata = index.metadata
    assert (index.id, index.image_name, index.arch) == (metadata.id, metadata.image_name, metadata.arch)
    assert (metadata.id, metadata.arch) == ("4c4c447055553144a1a22a1f1f7676f4", "arm64")
    assert (metadata.base, metadata.image_size, metadata.executable) == (0x100000000, 0x738, [(0x378, 0x738)])
    assert metadata.grade == "lines"
    assert (metadata.units, metadata.functions, metadata.ranges, metadata.symbols) == (1, 6, 79, 9)
    assert (metadata.names, metadata.files, metadata.partial) == (14, 3, [])
    index.verify()


def test_folded_functions() -> None:
    path = next(path for path in GOLDEN if path.stem == "icf-1")
    names = re.search(r'    "(\w+)" \S+ function (0x[0-9a-f]+) \w+\n    alias "(\w+)"', path.with_suffix(".txt").read_text())
    assert names is not None
    found = symdex.Index.open(path).function_names(int(names[2], 16))
    assert names[3] in found and len(found) > 1


def test_names() -> None:
    assert symdex.demangle("_ZN3foo3barEi") == "foo::bar(int)"
    assert symdex.demangle("main") == "main"
