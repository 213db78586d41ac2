"""The layout of the source: sizes of files and functions, and where code may be."""

import ast
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import ninja

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("platform/caret", "platform/ide", "inference", "tenants", "console", "tests")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
# Only this file may query the database as the tables' owner. (Migrations choose the owner by the
# option --database.)
OWNER_CONNECTION_FILE = "tenants/management/commands/create_partitions.py"


def test_platform_imports_the_standard_library() -> None:
    """`import platform` does not find our folder `platform`."""
    assert platform.__file__ is not None
    assert not Path(platform.__file__).is_relative_to(ROOT / "platform")
    assert platform.system()


def test_ninja_is_django_ninja_and_not_the_build_tool() -> None:
    """vLLM depends on the build tool Ninja, whose package also contains a module `ninja`. Python
    imports the one that was installed last."""
    assert hasattr(ninja, "NinjaAPI")


def test_the_platform_folder_contains_no_modules() -> None:
    modules = [path.name for path in (ROOT / "platform").glob("*.py")]

    assert modules == []


def test_no_module_shadows_the_standard_library() -> None:
    # Python searches the folder `platform` and the root for modules. The root's own folders of code
    # are the SOURCES without a slash, and `platform`, which the first test checks.
    paths = [*(ROOT / "platform").iterdir(), *(ROOT / name for name in SOURCES if "/" not in name)]
    names = {path.stem for path in paths}

    assert names & sys.stdlib_module_names == set()


def test_files_have_at_most_four_hundred_lines() -> None:
    long_files = {
        str(path.relative_to(ROOT)): length
        for path in _list_files()
        if path.parent.name != "migrations"  # generated
        if (length := len(path.read_text().splitlines())) > MAX_FILE_LINES
    }

    assert long_files == {}


def test_functions_have_at_most_sixty_lines() -> None:
    long_functions = {
        f"{path.relative_to(ROOT)}:{node.name}": length
        for path, node in _list_functions()
        if (length := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES
    }

    assert long_functions == {}


def test_no_module_has_a_vague_name() -> None:
    vague = {"utils", "util", "helpers", "common", "manager", "misc"}

    assert [path for path in _list_files() if path.stem in vague] == []


def test_every_product_module_has_a_docstring() -> None:
    undocumented = [
        str(path.relative_to(ROOT))
        for path in _list_files()
        if not path.is_relative_to(ROOT / "tests")
        and path.name not in ("apps.py", "__init__.py", "__main__.py")
        and ast.get_docstring(ast.parse(path.read_text())) is None
    ]

    assert undocumented == []


def test_only_one_file_uses_the_owner_connection() -> None:
    users = {
        str(path.relative_to(ROOT))
        for path in _list_files()
        if not path.is_relative_to(ROOT / "tests")
        and any(
            marker in path.read_text()
            for marker in ("OWNER_ALIAS]", 'using="owner"', 'using("owner")')
        )
    }

    assert users == {OWNER_CONNECTION_FILE}


def _list_files() -> Iterator[Path]:
    for source in SOURCES:
        yield from (ROOT / source).rglob("*.py")


def _list_functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in _list_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node
