"""Decision records follow one template. The index lists all of them. Links and references in the
repository lead to existing records.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDS_DIR = ROOT / "platform" / "docs" / "adr"
RECORDS = sorted(RECORDS_DIR.glob("[0-9]*.md"))
HEADINGS = ["Context", "Decision", "Consequences"]
STATUSES = {"Accepted", "Superseded"}
# Fields with links to other records. By field: the field of the linked record that leads back.
INVERSES = {
    "Supersedes": "Superseded by",
    "Superseded by": "Supersedes",
    "Amends": "Amended by",
    "Amended by": "Amends",
}
SOURCES = ("platform", "inference", "tenants", "console", "tests")
SUFFIXES = {".py", ".md", ".yaml", ".tpl", ".json", ".in", ".toml"}
MAX_LINES = 60  # one page
# A title such as "# 0002: Postgres row-level security separates tenants", a field such as
# "- Status: Accepted", a link to another record, and a row of the index (number, file, title and
# status).
_TITLE = re.compile(r"# (\d{4}): [A-Za-z].*[^.]")
_FIELD = re.compile(r"- ([A-Z][a-z ]+): (.+)")
_LINK = re.compile(r"\[(\d{4})\]\((\d{4}-[a-z0-9-]+\.md)\)")
_ROW = re.compile(r"\| \[(\d{4})\]\(([^)]+)\) \| (.+) \| (.+) \|")
_REFERENCE = re.compile(r"\bADR\s+(\d+)\b")


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: str(path.name[:4]))
def test_record_follows_the_template(record: Path) -> None:
    lines = record.read_text().splitlines()
    head, *sections = _split_sections(lines)

    assert [section[0].removeprefix("## ") for section in sections] == HEADINGS
    assert all(any(section[1:]) for section in sections)
    title = _TITLE.fullmatch(head[0])
    assert title is not None
    assert title[1] == record.name[:4]
    fields = [_FIELD.fullmatch(line) for line in head[1:] if line]
    assert all(fields)
    assert list(_read_fields(record))[:2] == ["Status", "Date"]
    assert len(lines) <= MAX_LINES


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: str(path.name[:4]))
def test_record_has_a_known_status_and_a_date(record: Path) -> None:
    fields = _read_fields(record)

    assert fields["Status"] in STATUSES
    assert (fields["Status"] == "Superseded") == ("Superseded by" in fields)
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", fields["Date"])
    assert fields.keys() <= {"Status", "Date", *INVERSES}


def test_links_between_records_go_both_ways() -> None:
    links = set(_read_relations())

    assert links
    assert {(target, INVERSES[field], source) for source, field, target in links} == links


def test_numbers_are_unique() -> None:
    numbers = [path.name[:4] for path in RECORDS]

    assert len(numbers) == len(set(numbers))


def test_index_lists_each_record_once_with_its_title_and_status() -> None:
    rows = _ROW.findall((RECORDS_DIR / "README.md").read_text())

    expected = [
        (path.name[:4], path.name, _read_title(path), _summarize_status(path)) for path in RECORDS
    ]
    assert sorted(rows) == expected


def test_references_in_the_repository_lead_to_records() -> None:
    existing_numbers = {path.name[:4] for path in RECORDS}
    unknown_references = {
        (path.relative_to(ROOT), number)
        for path, text in _read_sources()
        for number in _REFERENCE.findall(text)
        if number not in existing_numbers
    }

    assert unknown_references == set()


def _split_sections(lines: list[str]) -> list[list[str]]:
    """Split the lines before each heading. The first section begins with the record's title."""
    sections: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("#") and sections[0]:
            sections.append([])
        sections[-1].append(line)
    return sections


def _read_title(record: Path) -> str:
    return record.read_text().splitlines()[0].split(": ", 1)[1]


def _read_fields(record: Path) -> dict[str, str]:
    head = record.read_text().split("\n## ", 1)[0]
    return dict(_FIELD.findall(head))


def _read_relations() -> Iterator[tuple[str, str, str]]:
    """Yield source, field and target of each link, and check the name of its file."""
    for record in RECORDS:
        for field, value in _read_fields(record).items():
            if field in INVERSES:
                links = _LINK.findall(value)
                assert links, f"{record.name}: {field} has no link."
                for number, name in links:
                    assert name.startswith(number)
                    assert (RECORDS_DIR / name).exists()
                    yield record.name[:4], field, number


def _summarize_status(record: Path) -> str:
    """Return the status as the index shows it, such as "Accepted, amended by 0012"."""
    fields = _read_fields(record)
    for field in ("Superseded by", "Amended by"):
        if field in fields:
            numbers = ", ".join(number for number, _ in _LINK.findall(fields[field]))
            prefix = "Superseded by" if field == "Superseded by" else "Accepted, amended by"
            return f"{prefix} {numbers}"
    return fields["Status"]


def _read_sources() -> Iterator[tuple[Path, str]]:
    """Yield path and text of the files that may refer to a record. Records themselves use links."""
    paths = [path for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in [*paths, *ROOT.glob("*.md")]:
        is_excluded = RECORDS_DIR in path.parents or "node_modules" in path.parts
        if path.suffix in SUFFIXES and not is_excluded:
            yield path, path.read_text()
