"""Stores: folders and Redis."""

import socket
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import symdex
from conftest import GOLDEN, TESTDATA, program


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """The URL of a Redis server that ends with the test."""
    server = program("redis-server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert any("Ready to accept connections" in line for line in process.stdout)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.communicate()


def behaves_as_a_store(store: symdex.Store) -> None:
    paths = [path for path in GOLDEN if path.stem != "made-up-1"]
    indexes = {index.id: index for index in map(symdex.Index.open, paths)}
    assert store.ids() == [] and not store.is_read_only
    for id, index in indexes.items():
        assert id not in store and store.find(id) is None and store.stat(id) is None
        assert store.put(index) == "written"
        assert store.put(index) == "unchanged"
        assert id in store
    assert sorted(store.ids()) == sorted(indexes)
    for id, index in indexes.items():
        found = store.find(id.upper())
        assert found is not None and found.id == id
        offsets = [*range(0, index.metadata.image_size, 1 + index.metadata.image_size // 100)]
        assert found.lookup_many(offsets) == index.lookup_many(offsets)
        assert found.lookup_columns(offsets).names == index.lookup_columns(offsets).names
        offset = next(offset for offset in offsets if index.lookup(offset))
        frames = index.lookup(offset, lines="exact")
        assert found.lookup(offset, lines="exact") == frames
        start = frames[-1].function_start
        assert start is not None and found.function_names(start) == index.function_names(start)
        entry = store.stat(id)
        assert entry is not None and entry.id == id and entry.stored_size > 0
        assert entry.written is None or (datetime.now(UTC) - entry.written).total_seconds() < 3600
        assert store.remove(id) and not store.remove(id)
        assert id not in store
    with pytest.raises(ValueError, match="not an image id"):
        store.find("no id")


def test_a_folder(tmp_path: Path) -> None:
    behaves_as_a_store(symdex.Store(tmp_path / "folder"))
    assert symdex.Store(str(tmp_path)).url == symdex.Store(f"dir:{tmp_path}").url


def test_redis(redis: str) -> None:
    store = symdex.Store(redis)
    behaves_as_a_store(store)
    [image] = symdex.build(TESTDATA / "dsyms" / "inline-dwarf4.dSYM", store=store).images
    found = store.find(image.id)
    assert found is not None and found.lookup(0x3CF)[0].name == "cell"
    # Redis has the parts of an index, not the whole.
    with pytest.raises(symdex.UnsupportedError, match="in parts"):
        found.to_bytes()


def test_a_damaged_index_in_a_store(tmp_path: Path) -> None:
    [image] = symdex.build(TESTDATA / "dsyms" / "inline-dwarf4.dSYM", tmp_path).images
    assert image.location is not None
    Path(image.location).write_bytes(b"symdex")
    with pytest.raises(symdex.DamagedError, match=image.id):
        symdex.Store(tmp_path).find(image.id)
    with pytest.raises(symdex.UnsupportedError):
        symdex.Index.open(image.location)
    [again] = symdex.build(TESTDATA / "dsyms" / "inline-dwarf4.dSYM", tmp_path).images
    assert again.outcome == "repaired" and "replaced" in again.warnings[-1]


def test_a_store_that_cannot_be_reached() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        store = symdex.Store(f"redis://:secret@127.0.0.1:{closed.getsockname()[1]}/0", timeout=1)
        assert "secret" not in store.url and "secret" not in repr(store)
        with pytest.raises(symdex.UnavailableError) as raised:
            store.find("00ff")
        assert "secret" not in str(raised.value)


def test_urls() -> None:
    with pytest.raises(ValueError, match="ftp: is not a kind of store"):
        symdex.Store("ftp://host/path")
    with pytest.raises(ValueError, match="timeout"):
        symdex.Store("dir:indexes", timeout=-1)
    with pytest.raises(ValueError, match="ftp: is not a kind of store"):
        symdex.Symbolicator(stores="ftp://host/path")
