"""Builds: where indexes go, and what becomes of inputs that cannot be built."""

import shutil
from pathlib import Path

import pytest

import symdex
from conftest import GOLDEN, TESTDATA

DSYM = TESTDATA / "dsyms" / "inline-dwarf4.dSYM"


def test_without_output_the_indexes_are_open() -> None:
    [image] = symdex.build(DSYM).images
    assert image.index is not None and image.outcome is None and image.location is None
    assert image.index.lookup(0x3CF)[0].name == "cell"
    assert image.has_debug_information and image.debug_size > image.index_size
    assert Path(image.file).is_relative_to(DSYM)


def test_a_second_build_changes_nothing(tmp_path: Path) -> None:
    [first] = symdex.build(str(DSYM), str(tmp_path)).images
    [second] = symdex.build(DSYM, tmp_path, verify=True).images
    assert (first.outcome, second.outcome) == ("written", "unchanged")
    assert first.index is None


def test_readable_names() -> None:
    path = TESTDATA / "dsyms" / "swift-names.dSYM"
    [[plain], [readable]] = [symdex.build(path, readable_names=wanted).images for wanted in (False, True)]
    assert plain.index_size < readable.index_size
    assert plain.index is not None and readable.index is not None
    offsets = range(0, plain.index.metadata.image_size, 4)
    functions = [
        [[frame.function for frame in frames] for frames in index.lookup_many(offsets)]
        for index in (plain.index, readable.index)
    ]
    assert functions[0] == functions[1] and any(functions[0])


def test_archs_and_ids() -> None:
    fat = TESTDATA / "dsyms" / "fat.dSYM"
    images = symdex.build(fat).images
    assert len(images) > 1
    chosen = images[0]
    assert [image.id for image in symdex.build(fat, archs=[chosen.arch]).images] == [chosen.id]
    assert [image.id for image in symdex.build(fat, ids=[chosen.id.upper()]).images] == [chosen.id]
    with pytest.raises(symdex.MissingError, match="arm65"):
        symdex.build(fat, archs=["arm65"])
    with pytest.raises(symdex.MissingError, match="no input has the image 00ff"):
        symdex.build(fat, ids=["00ff"])


def test_archives(tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "dsyms"), "zip", DSYM.parent, DSYM.name)
    [image] = symdex.build(archive).images
    assert image.index is not None and image.index.lookup(0x3CF)[0].name == "cell"


def test_inputs_that_fail(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.dylib"
    debug_file = next((DSYM / "Contents" / "Resources" / "DWARF").iterdir())
    damaged.write_bytes(debug_file.read_bytes()[:200])
    text = tmp_path / "text"
    text.write_text("not a debug file")
    inputs = (path for path in [DSYM, tmp_path / "missing", text, damaged])
    with pytest.raises(symdex.DamagedError, match="damaged.dylib") as raised:
        symdex.build(inputs)
    result = raised.value.result
    assert result is not None
    assert [image.image_name for image in result.images] == ["inline-dwarf4"]
    kinds = sorted(type(failure).__name__ for failure in result.failures)
    assert kinds == ["DamagedError", "MissingError", "UnsupportedError"]
    unchecked = symdex.build([DSYM, text], check=False)
    assert len(unchecked.images) == 1 and len(unchecked.failures) == 1
    assert symdex.Error.result is None and symdex.MissingError("x").result is None


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="either output or store"):
        symdex.build(DSYM, tmp_path, store=symdex.Store(tmp_path))
    with pytest.raises(ValueError, match="on_conflict"):
        symdex.build(DSYM, on_conflict="first")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not an image id"):
        symdex.build(DSYM, ids=["xyz"])
    with pytest.raises(TypeError):
        symdex.build(5)  # type: ignore[arg-type]


def test_the_output_cannot_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(symdex.Error, match="cannot") as raised:
        symdex.build(DSYM, file)
    assert type(raised.value) is symdex.Error


def test_archives_in_folders_are_named(tmp_path: Path) -> None:
    shutil.copytree(DSYM, tmp_path / "in" / DSYM.name)
    shutil.make_archive(str(tmp_path / "in" / "other"), "zip", DSYM.parent, DSYM.name)
    with pytest.warns(symdex.SourceWarning, match="archives in a folder are not read"):
        assert len(symdex.build(tmp_path / "in").images) == 1


def test_golden_indexes_are_not_debug_files() -> None:
    with pytest.raises(symdex.UnsupportedError):
        symdex.build(GOLDEN[0])
