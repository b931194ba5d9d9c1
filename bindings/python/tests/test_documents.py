"""The examples of the docstrings and of the README run, and the types are those of the package."""

import ast
import doctest
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import symdex
from conftest import ROOT


def test_examples_of_the_docstrings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    finder, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for name in symdex.__all__:
        text = inspect.getdoc(getattr(symdex, name)) or ""
        runner.run(finder.get_doctest(text, vars(symdex).copy(), name, None, None))
    results = runner.summarize()
    assert results.failed == 0 and results.attempted >= 4


def test_everything_has_a_docstring() -> None:
    for name in symdex.__all__:
        item = getattr(symdex, name)
        if name == "__version__":
            continue
        assert inspect.getdoc(item), name
        if inspect.isclass(item) and not issubclass(item, Exception):
            members = [member for member in vars(item) if not member.startswith("_")]
            assert members and all(inspect.getdoc(getattr(item, member)) for member in members), name


def test_editors_show_the_docstrings() -> None:
    """Editors read those of the types, because a compiled module has no source."""
    types = ast.parse((Path(symdex.__file__).parent / "_symdex.pyi").read_text())
    compared = 0
    for item in types.body:
        if not isinstance(item, ast.ClassDef | ast.FunctionDef):
            continue
        there = getattr(symdex, item.name)
        members = item.body if isinstance(item, ast.ClassDef) else []
        named = [(item, there)] + [
            (member, getattr(there, member.name))
            for member in members
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_")
        ]
        for stated, item_or_member in named:
            overloads = [ast.unparse(decorator) for decorator in getattr(stated, "decorator_list", [])]
            if "overload" not in overloads:
                assert ast.get_docstring(stated) == inspect.getdoc(item_or_member), stated.name
                compared += 1
    assert compared > 60


def test_examples_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    os.symlink(ROOT / "testdata", tmp_path / "testdata")
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "bindings/python/README.md").read_text(), re.DOTALL)
    assert len(examples) == 3
    names: dict[str, object] = {"numpy": numpy, "offsets": range(0x4000, 0x4400, 4)}
    for example in examples:
        exec(example, names)
    assert len(names["names"]) > 10  # type: ignore[arg-type]


def test_types() -> None:
    pytest.importorskip("mypy")
    package = Path(symdex.__file__).parent
    assert (package / "py.typed").is_file()
    command = [sys.executable, "-m", "mypy.stubtest", "symdex", "--concise"]
    stubtest = subprocess.run(command, capture_output=True, text=True, cwd=package)
    assert stubtest.returncode == 0, stubtest.stdout + stubtest.stderr
    tests = Path(__file__).parent
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, *sorted(map(str, tests.glob("*.py")))]
    mypy = subprocess.run(command, capture_output=True, text=True, cwd=tests)
    assert mypy.returncode == 0, mypy.stdout + mypy.stderr
