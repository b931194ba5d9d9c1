"""Untrusted bytes as an index: exceptions or the right answers, never the end of the process."""

import random
from pathlib import Path

import pytest

import symdex
from conftest import GOLDEN


def opened(data: bytes) -> symdex.Index | None:
    try:
        return symdex.Index.from_bytes(data)
    except (symdex.DamagedError, symdex.UnsupportedError):
        return None


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_cuts_and_changes(path: Path) -> None:
    good = path.read_bytes()
    index = symdex.Index.from_bytes(good)
    offsets = list(range(0, index.metadata.image_size, max(1, index.metadata.image_size // 200)))
    expected = index.lookup_many(offsets)
    assert opened(good + b"\0") is None
    refused = 0
    for place in range(0, len(good), 3):
        assert opened(good[:place]) is None
        changed = bytearray(good)
        changed[place] ^= 1 << (place % 8)
        damaged = opened(bytes(changed))
        if damaged is None:
            refused += 1
            continue
        with pytest.raises(symdex.DamagedError):
            damaged.verify()
        try:
            assert damaged.lookup_many(offsets) == expected
            assert len(damaged.lookup_columns(offsets)) == sum(map(len, expected))
        except symdex.DamagedError:
            refused += 1
    assert refused > 0


def test_random_bytes() -> None:
    chance = random.Random(7)
    head = GOLDEN[0].read_bytes()[:64]
    for size in range(0, 3000, 7):
        assert opened(chance.randbytes(size)) is None
        assert opened(head + chance.randbytes(size)) is None


def test_what_is_no_index(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("some text")
    with pytest.raises(symdex.UnsupportedError, match=r"text: not a symdex index: a text file"):
        symdex.Index.open(file)
    with pytest.raises(FileNotFoundError, match="nothing") as missing:
        symdex.Index.open(tmp_path / "nothing")
    assert isinstance(missing.value, symdex.MissingError) and isinstance(missing.value, symdex.Error)
    with pytest.raises(symdex.Error):
        symdex.Index.open(tmp_path)
    with pytest.raises(TypeError):
        symdex.Index.open(None)  # type: ignore[arg-type]
    with pytest.raises(BufferError):
        symdex.Index.from_bytes(memoryview(bytes(16)).cast("q"))


def test_names_that_are_hard_to_demangle() -> None:
    for name in ("_ZN" + "N" * 100_000, "_Z" + "S_" * 50_000, "$s" + "A" * 100_000, "_R" + "I" * 100_000, "\0\ud83d\ude00"):
        try:
            symdex.demangle(name)
        except UnicodeEncodeError:
            pass
