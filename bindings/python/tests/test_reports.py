"""Reports: their forms, their sources, and those that cannot be read."""

import shutil
from pathlib import Path

import pytest

import symdex
from conftest import ROOT, TESTDATA

REPORT = TESTDATA / "demo" / "demo.crash"


def test_text_bytes_and_paths(demo: Path) -> None:
    symbolicator = symdex.Symbolicator(indexes=str(demo))
    text = symbolicator.symbolicate(REPORT.read_text())
    assert "dk_rle_expand" in text and "dk_rle_expand" not in REPORT.read_text()
    for report in (REPORT.read_bytes(), bytearray(REPORT.read_bytes()), memoryview(REPORT.read_bytes()), REPORT):
        assert symbolicator.symbolicate(report) == text.encode()
        assert symbolicator.symbolicate(report, format="text") == text


def test_all_kinds_of_sources_answer_alike(demo: Path, tmp_path: Path) -> None:
    expected = symdex.Symbolicator(indexes=demo).symbolicate(REPORT)
    archive = shutil.make_archive(str(tmp_path / "demo"), "zip", TESTDATA, "demo")
    files = sorted(demo.glob("*.symdex"))
    assert len(files) == 3
    for symbolicator in (
        symdex.Symbolicator(indexes=files),
        symdex.Symbolicator(debug_files=TESTDATA / "demo"),
        symdex.Symbolicator(debug_files=archive),
        symdex.Symbolicator(stores=demo),
        symdex.Symbolicator(stores=[tmp_path / "empty", f"dir:{demo}"]),
    ):
        assert symbolicator.symbolicate(REPORT) == expected


def test_a_store_gets_the_indexes_of_debug_files(tmp_path: Path) -> None:
    symdex.Symbolicator(stores=tmp_path / "new", debug_files=TESTDATA / "demo").symbolicate(REPORT)
    assert len(symdex.Store(tmp_path / "new").ids()) >= 1


def test_json_says_which_images_have_no_index(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    report = symdex.Symbolicator(indexes=tmp_path / "none").symbolicate(REPORT, format="json")
    status = {image["name"]: image["status"] for image in report["images"]}
    assert status["DemoKit"] == "missing"
    report = symdex.Symbolicator(indexes=demo).symbolicate(REPORT, format="json")
    status = {image["name"]: image["status"] for image in report["images"]}
    assert status["DemoKit"] == "found"


def test_sources_that_cannot_be_read(demo: Path, tmp_path: Path) -> None:
    with pytest.raises(symdex.MissingError, match="nothing"):
        symdex.Symbolicator(indexes=tmp_path / "nothing")
    damaged = tmp_path / "damaged.symdex"
    damaged.write_bytes(next(demo.glob("*.symdex")).read_bytes()[:100])
    with pytest.warns(symdex.SourceWarning, match="damaged.symdex"):
        symbolicator = symdex.Symbolicator(indexes=[damaged, demo])
    assert "dk_rle_expand" in symbolicator.symbolicate(REPORT.read_text())


def test_reports_that_cannot_be_read(demo: Path) -> None:
    symbolicator = symdex.Symbolicator(indexes=demo)
    with pytest.raises(symdex.UnsupportedError, match="not a crash report"):
        symbolicator.symbolicate("Dear diary")
    with pytest.raises(symdex.MissingError, match="nothing"):
        symbolicator.symbolicate(ROOT / "nothing")
    with pytest.raises(TypeError, match="neither str, bytes nor a path object"):
        symbolicator.symbolicate(5)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="format="):
        symbolicator.symbolicate(REPORT, format="html")  # type: ignore[call-overload]


@pytest.mark.parametrize("path", sorted((ROOT / "fuzz" / "seeds" / "report").iterdir()), ids=lambda path: path.name)
def test_cut_and_changed_reports_end_no_process(demo: Path, path: Path) -> None:
    symbolicator = symdex.Symbolicator(indexes=demo)
    report = path.read_bytes()
    for cut in range(0, len(report), max(1, len(report) // 40)):
        changed = bytearray(report)
        changed[cut] ^= 0x20
        for damaged in (report[:cut], bytes(changed)):
            try:
                symbolicator.symbolicate(damaged, format="text")
                symbolicator.symbolicate(damaged, format="json")
            except symdex.Error:
                pass
