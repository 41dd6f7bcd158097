"""Files and functions that a person can hold in mind: what outgrows this has two subjects."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    file for package in ("ivr", "memory", "callflows") for file in sorted((ROOT / package).rglob("*.py"))
]
FILE_LINES, FUNCTION_LINES = 400, 60


def functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_file_and_no_function_is_too_long(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= FILE_LINES
    long = {each.name: (each.end_lineno or 0) - each.lineno + 1 for each in functions(file)}
    assert {name: lines for name, lines in long.items() if lines > FUNCTION_LINES} == {}
