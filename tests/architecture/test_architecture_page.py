"""platform/docs/architecture.md: its lists of steps are short, and name files, functions and
classes that exist.
"""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "platform" / "docs" / "architecture.md"
# The page follows three paths through the code, each in a section with a numbered list of steps.
# By title of the section: the maximum number of files that its steps name.
MAX_FILES: Final = {
    "A completion: from the socket to its usage row": 45,
    "A policy change: until the gateway obeys": 25,
    "An invoice: from usage to PDF": 18,
}
# A step has a number, a file, the names of some of its definitions, and a text, such as:
# 4. `inference/gateway/protocol/frames.py` `decode_frame`: turns JSON text into a typed frame.
_STEP: Final = re.compile(r"^(\d+)\. `([\w/.]+\.py)`((?:,? `\w+`)+): \S", re.MULTILINE)
_PATH: Final = re.compile(r"`((?:platform|inference|tenants|console|tests)/[\w/.]+)`")


@pytest.mark.parametrize("title", MAX_FILES)
def test_each_section_is_a_numbered_list_of_few_files(title: str) -> None:
    section = _read_section(title)
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", section, re.MULTILINE)]
    steps = _STEP.findall(section)
    files = {file for _, file, _ in steps}

    # A numbered line that is not written as a step makes the lists differ.
    assert numbers == list(range(1, len(steps) + 1))
    # At least 10 files, so that a section that was not found fails.
    assert 10 < len(files) <= MAX_FILES[title]


@pytest.mark.parametrize(
    ("file", "names"),
    [(file, names) for _, file, names in _STEP.findall(PAGE.read_text(encoding="utf-8"))],
)
def test_each_step_names_definitions_of_its_file(file: str, names: str) -> None:
    step_names = set(re.findall(r"\w+", names))

    assert step_names - _find_definitions(ROOT / file) == set()


def test_every_file_and_folder_on_the_page_exists() -> None:
    paths = _PATH.findall(PAGE.read_text(encoding="utf-8"))

    assert len(paths) > 60  # the pattern finds the paths of the page
    assert [path for path in paths if not (ROOT / path).exists()] == []


def _read_section(title: str) -> str:
    return PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]


def _find_definitions(path: Path) -> set[str]:
    """Return the names of the module's functions, classes and constants."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                names.add(name)
    return names
