"""Names and texts use the project's words. Packages are not too large, modules not too small.

The lists of words and of exceptions are the files in `language/`.
"""

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from caret.local.paths import REPOSITORY

_LISTS: Final = Path(__file__).parent / "language"
_PRODUCT: Final = ("platform/caret", "platform/ide/caret_ls", "inference", "tenants", "console")
_DOCS: Final = REPOSITORY / "platform" / "docs"
# Folders whose modules are imported without the folder's name. The longer path is removed first.
_IMPORT_ROOTS: Final = ("platform/ide/", "platform/")
MAX_SMALL_LINES: Final = 60  # a module with at most as many lines is small
MAX_FLAT_MODULES: Final = 12
MAX_QUESTION_SHARE: Final = 0.02  # of all docstrings


@pytest.fixture(scope="module", autouse=True)
def _release_syntax_trees() -> Iterator[None]:
    """Release the syntax trees after these tests. Garbage collections would search them."""
    yield
    _parse_modules.cache_clear()
    _parse_tests.cache_clear()


def test_no_two_classes_have_the_same_name() -> None:
    conventional = set(_read_list("class_names")["conventional"])
    files: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in _parse_modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name not in conventional:
                files[node.name].append(path)

    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}


def test_no_class_has_a_vague_name() -> None:
    banned = set(_read_list("class_names")["banned"])
    vague_names = [
        f"{path}: {node.name}"
        for path, tree in _parse_modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.lstrip("_") in banned
    ]

    assert vague_names == []


def test_no_variable_has_a_vague_name() -> None:
    names = _read_list("variable_names")
    vague_names: defaultdict[str, set[str]] = defaultdict(set)
    for path, tree in (*_parse_modules(), *_parse_tests()):
        for name in _bound_names(tree):
            if name.lstrip("_") in names["banned"]:
                vague_names[path].add(name)

    assert vague_names == {}


def test_no_replaced_term_is_used() -> None:
    terms = _read_list("replaced_terms")
    # Longer terms come first, because a shorter one may be the beginning of a longer one.
    words = "|".join(map(re.escape, sorted(terms, key=len, reverse=True)))
    replaced = re.compile(rf"(?<![\w.-])({words})(?![\w-])")
    uses = [
        f"{name}: use {terms[match[1]]!r} instead of {match[1]!r}"
        for name, text in _read_texts()
        for match in replaced.finditer(text)
    ]

    assert uses == []


def test_no_text_uses_masculine_pronouns() -> None:
    pronoun = re.compile(r"\b(he|him|his|himself)\b", re.IGNORECASE)
    lines = [
        f"{name}:{number}"
        for name, text in _read_texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pronoun.search(line)
    ]

    assert lines == []


def test_few_docstrings_begin_with_a_question_word() -> None:
    """Such sentences are often hard to parse, as are those that begin with "Of"."""
    counts = Counter(_first_words())
    num_questions = sum(counts[word] for word in ("What", "Of", "Whether", "Who", "Whose", "How"))

    assert num_questions / counts.total() <= MAX_QUESTION_SHARE


def test_packages_have_at_most_a_dozen_modules() -> None:
    exceptions = _read_list("large_packages")
    sizes = Counter(
        str(Path(path).parent) for path, _ in _parse_modules() if not path.endswith("__init__.py")
    )
    large = {package: size for package, size in sizes.items() if size > MAX_FLAT_MODULES}

    assert set(large) == set(exceptions)


def test_small_modules_have_several_importers() -> None:
    exceptions = _read_list("small_modules")
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for path, tree in _parse_modules():
        for name in _imported_modules(tree):
            importers[name].add(path)
    small = {
        path
        for path, _ in _parse_modules()
        if _is_small(path) and len(importers[_module_name(path)]) == 1
    }

    assert small == set(exceptions)


def test_each_term_of_the_glossary_is_used() -> None:
    terms = re.findall(r"^\| \*\*(.+?)\*\*", (_DOCS / "glossary.md").read_text(), re.MULTILINE)
    text = "\n".join(
        text for name, text in _read_texts() if name != "platform/docs/glossary.md"
    ).lower()
    unused = [term for term in terms if not re.search(term.lower().replace(" ", r"[\s_-]+"), text)]

    assert terms
    assert unused == []


@cache
def _read_list(name: str) -> dict[str, Any]:
    return tomllib.loads((_LISTS / f"{name}.toml").read_text())


@cache
def _parse_modules() -> tuple[tuple[str, ast.Module], ...]:
    """Return the product's modules and their syntax trees, without migrations."""
    return tuple(
        (str(path.relative_to(REPOSITORY)), ast.parse(path.read_text()))
        for root in _PRODUCT
        for path in sorted((REPOSITORY / root).rglob("*.py"))
        if "migrations" not in path.parts and "vendor" not in path.parts
    )


@cache
def _parse_tests() -> tuple[tuple[str, ast.Module], ...]:
    return tuple(
        (str(path.relative_to(REPOSITORY)), ast.parse(path.read_text()))
        for path in sorted((REPOSITORY / "tests").rglob("*.py"))
    )


def _bound_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names of variables, parameters and functions, without fields of classes."""
    fields = {
        id(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        for target in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store) and id(node) not in fields:
                yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ExceptHandler)):
            yield node.name or ""


@cache
def _read_texts() -> tuple[tuple[str, str], ...]:
    """Return path and text of the product's code, templates and documents.

    Tests, migrations and the changelog are left out.
    """
    paths = [REPOSITORY / path for path, _ in _parse_modules()]
    paths += (REPOSITORY / "console" / "templates").rglob("*.html")
    paths += [path for path in _DOCS.rglob("*.md") if path.name != "CHANGELOG.md"]
    paths += REPOSITORY.glob("*.md")
    return tuple((str(path.relative_to(REPOSITORY)), path.read_text()) for path in sorted(paths))


def _first_words() -> Iterator[str]:
    """Yield the first word of each docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for _, tree in _parse_modules():
        for node in ast.walk(tree):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                yield re.split(r"[\s,:.]", text)[0]


def _imported_modules(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted names of the modules that may be imported.

    For `from a import b` these are `a` and `a.b`, because `b` may be a module.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _module_name(path: str) -> str:
    for root in _IMPORT_ROOTS:
        path = path.removeprefix(root)
    return path.removesuffix(".py").replace("/", ".")


def _is_small(path: str) -> bool:
    if path.endswith(("__init__.py", "/urls.py")) or "/management/commands/" in path:
        return False
    return len((REPOSITORY / path).read_text().splitlines()) <= MAX_SMALL_LINES
