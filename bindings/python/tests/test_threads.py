"""Threads: they share indexes, and others run while many addresses are looked up."""

import signal
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest

import symdex
from conftest import GOLDEN, TESTDATA


def test_threads_share_indexes() -> None:
    indexes = [symdex.Index.open(path, map=True) for path in GOLDEN]
    offsets = [list(range(0, index.metadata.image_size, 1 + index.metadata.image_size // 300)) for index in indexes]
    expected = [index.lookup_many(of_index) for index, of_index in zip(indexes, offsets, strict=True)]

    def answers(number: int) -> bool:
        place = number % len(indexes)
        index, asked = indexes[place], offsets[place]
        one_by_one = [index.lookup(offset) for offset in asked]
        return one_by_one == expected[place] == index.lookup_many(asked)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(answers, range(96)))


def runs_meanwhile(work: threading.Thread) -> int:
    """How often this thread runs while the other one works."""
    turns = 0
    work.start()
    while work.is_alive():
        time.sleep(0.001)
        turns += 1
    return turns


def test_other_threads_run_during_lookups(index: symdex.Index) -> None:
    offsets = numpy.arange(30_000, dtype=numpy.uint64) % index.metadata.image_size
    begun = time.perf_counter()
    expected = len(index.lookup_columns(offsets))
    seconds = time.perf_counter() - begun
    found: list[int] = []
    turns = runs_meanwhile(threading.Thread(target=lambda: found.append(len(index.lookup_columns(offsets)))))
    assert found == [expected]
    # If the lookups held the lock of the interpreter, there would be one turn before and one after them.
    assert seconds < 0.1 or turns > 5, (seconds, turns)


def test_threads_build_into_one_folder(tmp_path: Path) -> None:
    paths = sorted((TESTDATA / "dsyms").glob("inline-*.dSYM"))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda path: symdex.build(path, tmp_path, jobs=1), paths * 2))
    images = [image for result in results for image in result.images]
    assert {image.outcome for image in images} == {"written", "unchanged"}
    assert len(list(tmp_path.glob("*.symdex"))) == len({image.id for image in images})


def test_other_threads_run_while_frames_are_made(index: symdex.Index) -> None:
    offsets = numpy.arange(100_000, dtype=numpy.uint64) % index.metadata.image_size
    begun = time.perf_counter()
    expected = len(index.lookup_many(offsets))
    seconds = time.perf_counter() - begun
    found: list[int] = []
    turns = runs_meanwhile(threading.Thread(target=lambda: found.append(len(index.lookup_many(offsets)))))
    assert found == [expected]
    assert seconds < 0.1 or turns > 5, (seconds, turns)


class Interrupted(Exception):
    """Raised by the handler of a signal."""


def interrupted(work: Callable[[], object]) -> None:
    """Sends a signal while `work` runs, whose handler raises an exception."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    def send() -> None:
        time.sleep(0.1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(Interrupted):
            work()
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)


def large_elf(functions: int = 1_000_000) -> bytes:
    """An ELF file with this many functions of 16 bytes."""
    fields = [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
    symbols = numpy.zeros(functions + 1, dtype=fields)
    numbers = numpy.arange(functions, dtype=numpy.uint64)
    symbols["name"][1:] = 1 + 9 * numbers
    symbols["info"][1:] = 0x12
    symbols["section"][1:] = 1
    symbols["value"][1:] = 0x1000 + 16 * numbers
    symbols["size"][1:] = 16
    names = b"\0" + b"".join(b"f%07d\0" % number for number in range(functions))
    parts = [bytes(16 * functions), symbols.tobytes(), names, b"\0.text\0.symtab\0.strtab\0"]
    # The name, type, flags, address, link, info and size of the entries of each section.
    heads = [(1, 1, 6, 0x1000, 0, 0, 0), (7, 2, 0, 0, 3, 1, 24), (15, 3, 0, 0, 0, 0, 0), (15, 3, 0, 0, 0, 0, 0)]
    headers, at = bytes(64), 64
    for part, (name, kind, flags, address, link, info, entry) in zip(parts, heads, strict=True):
        headers += struct.pack("<IIQQQQIIQQ", name, kind, flags, address, at, len(part), link, info, 1, entry)
        at += len(part)
    ident = b"\x7fELF\2\1\1" + bytes(9)
    head = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, 5, 4)
    return head + b"".join(parts) + headers


def test_a_signal_ends_a_build_in_the_middle_of_a_debug_file(tmp_path: Path) -> None:
    big, output = tmp_path / "big.so", tmp_path / "indexes"
    big.write_bytes(large_elf())
    interrupted(lambda: symdex.build(big, output, jobs=1))
    assert list(output.glob("*.symdex")) == []
    # The next build is not stopped.
    [image] = symdex.build(TESTDATA / "dsyms" / "inline-dwarf4.dSYM", output).images
    assert image.outcome == "written"
    # Builds on other threads are none of the main thread's.
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(symdex.build, TESTDATA / "dsyms" / "inline-dwarf4.dSYM", output)
        assert other.result().images[0].outcome == "unchanged"


def test_more_jobs_than_the_limit_are_an_error() -> None:
    for jobs in [1025, 10**9]:
        with pytest.raises(ValueError, match="at most 1024 threads"):
            symdex.build(TESTDATA / "dsyms" / "inline-dwarf4.dSYM", jobs=jobs)
