"""Prints how many addresses of an index are looked up in a second, in each of the ways that the package has.

    cargo run --release -p symdex --example lookups -- INDEX
    python bindings/python/bench.py INDEX

The first command asks the Rust reader for the same addresses.
"""

import sys
import threading
import time
from collections.abc import Callable

import numpy

import symdex

COUNT = 20_000


def rate(name: str, work: Callable[[], int]) -> None:
    begun = time.perf_counter()
    frames = work()
    print(f"{name}: {COUNT / (time.perf_counter() - begun):.0f} lookups a second, {frames} frames")


def in_new_thread(work: Callable[[], None]) -> None:
    """Calls `work` in a thread that has no answers of earlier lookups."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def main() -> None:
    index = symdex.Index.open(sys.argv[1], map=False)
    executable = index.metadata.executable
    start, end = executable[0][0], executable[-1][1]
    # Spread over the code by Fibonacci hashing, which wraps around.
    hashes = numpy.arange(COUNT, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
    array = numpy.uint64(start) + hashes % numpy.uint64(end - start)
    offsets = [int(offset) for offset in array]

    def total(answers: list[list[symdex.Frame]]) -> int:
        return sum(map(len, answers))

    def read(frames: list[symdex.Frame]) -> int:
        """Makes Python strings of an answer."""
        return sum(1 for frame in frames if (frame.name, frame.file, frame.line) is not None)

    def one_by_one() -> None:
        for round in ("new addresses", "repeated addresses"):
            rate(f"lookup, {round}", lambda: sum(len(index.lookup(offset)) for offset in offsets))
        rate("lookup and strings, repeated addresses", lambda: sum(read(index.lookup(offset)) for offset in offsets))

    in_new_thread(one_by_one)
    ways: list[tuple[str, Callable[[], int]]] = [
        ("lookup_many of a list", lambda: total(index.lookup_many(offsets))),
        ("lookup_many of an array", lambda: total(index.lookup_many(array))),
        ("lookup_columns of an array", lambda: len(index.lookup_columns(array))),
    ]
    for name, work in ways:

        def twice(name: str = name, work: Callable[[], int] = work) -> None:
            for round in ("new addresses", "repeated addresses"):
                rate(f"{name}, {round}", work)

        in_new_thread(twice)


if __name__ == "__main__":
    main()
