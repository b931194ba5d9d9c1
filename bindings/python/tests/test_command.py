"""What the package builds and answers is what the command builds and answers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import symdex
from conftest import TESTDATA

DEBUG_FILES = sorted([*(TESTDATA / "dsyms").glob("*.dSYM"), *(TESTDATA / "elf").glob("*.so")])


@pytest.mark.parametrize("path", DEBUG_FILES, ids=lambda path: path.name)
def test_indexes_and_answers(command: Callable[..., str], path: Path, tmp_path: Path) -> None:
    lines = command("build", path, "-o", tmp_path / "command", "--json").splitlines()
    built = {line["id"]: line for line in map(json.loads, lines) if "id" in line}
    images = symdex.build(path, tmp_path / "python").images
    assert {image.id for image in images} == set(built)
    for image in images:
        assert image.location is not None and image.outcome == "written"
        file = Path(image.location)
        assert file.read_bytes() == (tmp_path / "command" / file.name).read_bytes()
        assert (image.arch, image.index_size) == (built[image.id]["arch"], built[image.id]["index_size"])
        index = symdex.Index.open(file)
        offsets = sorted({*range(0, index.metadata.image_size, max(1, index.metadata.image_size // 500))})
        asked = "".join(f"{offset:#x}\n" for offset in offsets)
        answers = map(json.loads, command("lookup", file, "--json", input=asked).splitlines())
        for frames, answer in zip(index.lookup_many(offsets), answers, strict=True):
            assert [
                {
                    "function": frame.function,
                    "name": frame.name,
                    "file": frame.file,
                    "line": frame.line,
                    "inlined": frame.inlined,
                    "table": frame.table,
                }
                for frame in frames
            ] == [{key: frame.get(key) for key in REPORTED} for frame in answer["functions"]], answer["address"]


REPORTED = ["function", "name", "file", "line", "inlined", "table"]


@pytest.mark.parametrize("options", [{}, {"lines": "exact", "addresses": "as-given", "inlines": False}, {"demangle": False}])
def test_reports(command: Callable[..., str], demo: Path, options: dict[str, object]) -> None:
    report = TESTDATA / "demo" / "demo.crash"
    flags = [
        *(["--lines", "exact", "--addresses", "as-given", "--no-inlines"] if "lines" in options else []),
        *(["--no-demangle"] if "demangle" in options else []),
    ]
    symbolicator = symdex.Symbolicator(indexes=demo)
    given = report.read_text()
    for format in ("native", "text"):
        expected = command("symbolicate", report, "--index", demo, "--format", format, *flags)
        assert symbolicator.symbolicate(given, format=format, **options) == expected  # type: ignore[call-overload]
    expected = json.loads(command("symbolicate", report, "--index", demo, "--json", *flags))
    del expected["report"]
    assert symbolicator.symbolicate(given, format="json", **options) == expected  # type: ignore[call-overload]
