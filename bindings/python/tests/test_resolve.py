"""Many addresses of many images, as a table of Arrow."""

import importlib
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

import symdex
from conftest import TESTDATA, missing

try:
    pyarrow: Any = importlib.import_module("pyarrow")
except ImportError:
    pyarrow = None

GOLDEN = TESTDATA / "golden" / "v1"


@pytest.fixture(autouse=True)
def arrow() -> None:
    if pyarrow is None:
        missing("pyarrow is not installed")


def expected(index: symdex.Index, address: int) -> list[tuple[object, ...]]:
    return [(frame.function, frame.name, frame.file, frame.line) for frame in index.lookup(address)]


def found(row: dict[str, Any]) -> list[tuple[object, ...]]:
    return [(frame["function"], frame["name"], frame["file"], frame["line"]) for frame in row["frames"]]


def test_rows_are_those_of_lookups_in_the_order_of_the_addresses() -> None:
    indexes: dict[str, symdex.Index] = {}
    for path in sorted(GOLDEN.glob("*.symdex")):
        index = symdex.Index.open(path)
        indexes.setdefault(index.id, index)
    assert len(indexes) > 3
    chance = random.Random(1)
    ids = [chance.choice([*indexes, "00" * 16]) for _ in range(5000)]
    addresses = [chance.randrange(0x1000) for _ in ids]
    symbolicator = symdex.Symbolicator(indexes=[GOLDEN / f"{name.stem}.symdex" for name in GOLDEN.glob("*.symdex")])
    table = symbolicator.resolve(ids, numpy.array(addresses))
    assert table.num_rows == len(ids)
    known = 0
    for id, address, row in zip(ids, addresses, table.to_pylist(), strict=True):
        if id not in indexes:
            assert row["status"] == "missing" and "no index" in row["reason"] and row["frames"] == []
            continue
        frames = expected(indexes[id], address)
        assert found(row) == frames, (id, address)
        if frames:
            assert row["function_start"] == indexes[id].lookup(address)[-1].function_start
            assert row["table"] == indexes[id].lookup(address)[-1].table
            known += 1
        else:
            assert (row["status"], row["table"]) == ("missing_symbol", None)
    assert known > 100


def test_ids_and_addresses_come_from_lists_numpy_and_pyarrow(index: symdex.Index) -> None:
    symbolicator = symdex.Symbolicator(indexes=GOLDEN / "inline-dwarf4-1.symdex")
    addresses = [0x3CF, 0x3D3, 0x3CF]
    ids = [index.id] * 3
    rows = symbolicator.resolve(ids, addresses).to_pylist()
    assert [found(row) for row in rows] == [expected(index, address) for address in addresses]
    dictionary = pyarrow.array(ids).dictionary_encode()
    for given in (index.id, numpy.array(ids), numpy.array(ids, object), pyarrow.array(ids), dictionary,
                  pyarrow.chunked_array([dictionary[:1], dictionary[1:]]), pyarrow.array(ids, pyarrow.large_string())):
        for offsets in (numpy.array(addresses, numpy.uint64), numpy.array(addresses), pyarrow.array(addresses),
                        pyarrow.array(addresses, pyarrow.uint64()), pyarrow.chunked_array([addresses[:2], addresses[2:]])):
            assert symbolicator.resolve(given, offsets).to_pylist() == rows
    empty = symbolicator.resolve(index.id, numpy.array([], numpy.uint64))
    assert empty.num_rows == 0 and empty.schema == symbolicator.resolve(index.id, addresses).schema
    exact = symbolicator.resolve(index.id, [0x3CF], lines="exact").to_pylist()
    assert exact[0]["frames"][0]["line"] == index.lookup(0x3CF, lines="exact")[0].line


def test_wrong_arguments_are_refused(index: symdex.Index) -> None:
    symbolicator = symdex.Symbolicator(indexes=GOLDEN / "inline-dwarf4-1.symdex")
    with pytest.raises(ValueError, match="row 1: the address -1 is negative"):
        symbolicator.resolve(index.id, [0, -1])
    with pytest.raises(ValueError, match="row 1: found `x`"):
        symbolicator.resolve([index.id, "x"], [0, 1])
    with pytest.raises(ValueError, match="row 0: `address` is null"):
        symbolicator.resolve(index.id, pyarrow.array([None, 1], pyarrow.uint64()))
    with pytest.raises(ValueError, match="expected `id`"):
        symbolicator.resolve(index.id, [0.5])
    with pytest.raises(ValueError, match="length"):
        symbolicator.resolve([index.id], [0, 1])
    with pytest.raises(ValueError, match="statement"):
        symbolicator.resolve(index.id, [0], lines="other")  # type: ignore[arg-type]


def test_the_table_shares_the_memory_of_the_answers(index: symdex.Index) -> None:
    symbolicator = symdex.Symbolicator(indexes=GOLDEN / "inline-dwarf4-1.symdex")
    addresses = numpy.tile(numpy.arange(0x3A0, 0x4A0, dtype=numpy.uint64), 1000)
    before = pyarrow.total_allocated_bytes()
    table = symbolicator.resolve(index.id, addresses)
    table.validate(full=True)
    assert table.nbytes > 5_000_000
    assert pyarrow.total_allocated_bytes() - before < 100_000, "the columns are not copied"
    # They live as long as the table.
    del symbolicator
    frames = table.column("frames").combine_chunks()
    assert frames.flatten().field("line")[0].as_py() is not None


def test_pyarrow_is_needed_for_nothing_else(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import symdex\n"
        f"symbolicator = symdex.Symbolicator(indexes={str(GOLDEN / 'inline-dwarf4-1.symdex')!r})\n"
        "try:\n    symbolicator.resolve('aa', [1])\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert "resolve needs pyarrow" in done.stdout, done.stderr


def test_no_addresses_and_narrow_ones_are_taken(index: symdex.Index) -> None:
    symbolicator = symdex.Symbolicator(indexes=GOLDEN / "inline-dwarf4-1.symdex")
    none: list[str] = []
    for ids in (index.id, none):
        assert symbolicator.resolve(ids, []).num_rows == 0
    for kind in ("int8", "uint32", "uint64"):
        assert symbolicator.resolve(index.id, numpy.array([1, 2], dtype=kind)).num_rows == 2
