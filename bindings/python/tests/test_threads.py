"""Threads: they share indexes, and others run while many addresses are looked up."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy

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
