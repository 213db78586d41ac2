"""The documents list all settings and all pages. Their links and paths lead to existing files."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "platform" / "docs"
SOURCES = ("platform/caret", "platform/scripts", "inference", "tenants", "console")
# Set by Caret itself, so operators need no documentation of it.
INTERNAL = {"CARET_SUPERVISOR_TAG"}
# The code composes these names, so a search does not find them.
COMPOSED = {f"CARET_FIRST_TOKEN_TARGET_{mode}_MS" for mode in ("INLINE", "FIM", "BLOCK", "CHAT")}
_SETTING = r"(?:CARET_[A-Z0-9_]*[A-Z0-9]|DATABASE_URL|REDIS_URL|OTEL_[A-Z_]+[A-Z])"
_PATH = re.compile(r"\b(?:platform|inference|tenants|console|tests)/[\w./-]*[\w/]")
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def test_the_settings_page_lists_exactly_the_settings_that_the_code_reads() -> None:
    assert _documented_settings() == _settings_in_code()


def test_the_index_lists_all_pages() -> None:
    linked_pages = set(_LINK.findall((DOCS / "README.md").read_text()))
    pages = {path.name for path in DOCS.glob("*.md")} - {"README.md"}

    assert pages <= linked_pages


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))], ids=str)
def test_local_links_lead_to_existing_files(page: Path) -> None:
    links = [link for link in _LINK.findall(page.read_text()) if "://" not in link]

    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_extensions_description_has_no_local_links() -> None:
    """`vsce package` refuses them, because the .vsix contains no other document."""
    text = (ROOT / "platform" / "ide" / "vscode" / "README.md").read_text()

    assert [link for link in _LINK.findall(text) if "://" not in link] == []


def test_paths_in_contributing_exist() -> None:
    paths = _PATH.findall((ROOT / "CONTRIBUTING.md").read_text())

    assert len(paths) > 40  # the pattern finds the paths of the document
    assert [path for path in paths if not (ROOT / path).exists()] == []


def _documented_settings() -> set[str]:
    """Return the settings in the tables' first column.

    Rows abbreviate `CARET_FIRST_TOKEN_TARGET_FIM_MS` to `..._FIM_MS`.
    """
    rows = [
        line.split("|")[1]
        for line in (DOCS / "settings.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    names = {name for row in rows for name in re.findall(f"`({_SETTING})`", row)}
    # Other abbreviations, such as `..._FILE`, do not end with _MS.
    suffixes = [suffix for row in rows for suffix in re.findall(r"`\.\.\.(_[A-Z_]+)`", row)]
    abbreviated = {
        f"CARET_FIRST_TOKEN_TARGET{suffix}" for suffix in suffixes if suffix.endswith("_MS")
    }
    return names | abbreviated


def _settings_in_code() -> set[str]:
    names = {name for text in _read_texts() for name in re.findall(f"[\"']({_SETTING})[\"']", text)}
    return (names | COMPOSED) - INTERNAL


def _read_texts() -> Iterator[str]:
    for source in SOURCES:
        for path in (ROOT / source).rglob("*"):
            # Scripts have no suffix.
            if path.suffix in (".py", "") and path.is_file():
                yield path.read_text()
