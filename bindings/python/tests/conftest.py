"""What the tests share: the files of the repository, and the command to compare with."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import symdex

ROOT = Path(__file__).resolve().parents[3]
TESTDATA = ROOT / "testdata"
GOLDEN = sorted((TESTDATA / "golden" / "v1").glob("*.symdex"))


def missing(what: str) -> None:
    """Skips the test because a program is missing; fails if SYMDEX_TEST_REQUIRE asks for all programs."""
    if "programs" in os.environ.get("SYMDEX_TEST_REQUIRE", ""):
        pytest.fail(what)
    pytest.skip(what)


def program(name: str) -> str:
    """The path of an installed program."""
    path = shutil.which(name)
    if path is None:
        missing(f"{name} is not installed")
    assert path is not None
    return path


@pytest.fixture(scope="session")
def command() -> Callable[..., str]:
    """Runs the command `symdex` of this repository and returns its output."""
    path = Path(os.environ.get("SYMDEX_COMMAND", ROOT / "target" / "debug" / "symdex"))
    if not path.is_file():
        missing(f"{path} is missing; run `cargo build -p symdex-cli`, or name the command with SYMDEX_COMMAND")

    def run(*arguments: str | Path, input: str | None = None) -> str:
        done = subprocess.run(
            [path, *arguments, "--no-config"], input=input, capture_output=True, text=True, timeout=120
        )
        # 3: something was not found. The output says what.
        assert done.returncode in (0, 3), done.stderr
        return done.stdout

    return run


@pytest.fixture
def index() -> symdex.Index:
    """A small index with inlined functions."""
    return symdex.Index.open(TESTDATA / "golden" / "v1" / "inline-dwarf4-1.symdex")


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """A folder with the indexes of the demo app."""
    symdex.build(TESTDATA / "demo", tmp_path / "indexes")
    return tmp_path / "indexes"
