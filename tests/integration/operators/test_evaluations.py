"""Reports of `manage.py evaluate`: a command stores them, and operators' pages show them."""

import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tenants.base.pagination import PagePosition, encode_cursor
from tenants.fleet.evaluations import MAX_TITLE_CHARS
from tenants.models import Evaluation
from tests.fakes.evaluation import make_report_file
from tests.integration.operators.browsers import signed_in

_DIFFERENCE = {"value": 0, "low": 0, "high": 0, "num_tasks": 1, "is_significant": False}
_UNKNOWN = "/operators/evaluations/00000000-0000-7000-8000-000000000000"
_CELL = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.DOTALL)


def _store(tmp_path: Path, report: bytes, **options: Any) -> str:
    """Store the report, and return the path of its page."""
    file = tmp_path / "report.json"
    file.write_bytes(report)
    output = io.StringIO()
    call_command("store_evaluation", str(file), stdout=output, **options)
    match = re.fullmatch(r"Stored as '.*' \(([0-9a-f-]{36})\)\.\n", output.getvalue())
    assert match is not None, output.getvalue()
    return f"/operators/evaluations/{match[1]}"


def _open(path: str) -> str:
    """Return the page's text without tags."""
    response = signed_in().client.get(path)
    assert response.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def _rows(path: str) -> list[list[str]]:
    """Return the texts of the cells of each table row."""
    html = signed_in().client.get(path).content.decode()
    return [
        [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in _CELL.findall(row)]
        for row in re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    ]


def test_an_empty_list_names_the_command_that_stores_evaluations() -> None:
    # Other tests have stored evaluations. After this position, the list is empty.
    end = encode_cursor(PagePosition(datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0)))

    page = _open(f"/operators/evaluations?cursor={end}")

    assert "manage.py store_evaluation report.json" in page


def test_a_stored_report_is_listed_with_its_pools(tmp_path: Path) -> None:
    _store(tmp_path, make_report_file(), title="Layouts of Qwen")

    row = _rows("/operators/evaluations")[1]  # below the headings
    assert row[:5] == [
        "Layouts of Qwen",
        "Code from a repository",
        "40",
        "fast fast:psm",
        "30.0% 75.0%",
    ]


def test_two_pools_are_compared_with_intervals(tmp_path: Path) -> None:
    """The pools solve 12 and 30 of the same 40 tasks."""
    path = _store(tmp_path, make_report_file())

    lines = {row[0]: row for row in _rows(path)}

    assert "Difference" in _open(path)
    assert lines["Exact match"] == [
        "Exact match",
        "30.0% 18.1% to 45.4%",
        "75.0% 59.8% to 85.8%",
        "+45.0 points (+29.4 to +60.6)",
        "better",
    ]
    assert lines["fast"][1:5] == ["Qwen2.5-Coder-1.5B", "40", "0", "0"]
    assert {"Single line", "Several lines", "Random span", "Python", "Go"} <= lines.keys()


def test_one_pool_has_no_difference(tmp_path: Path) -> None:
    page = _open(_store(tmp_path, make_report_file(num_right=(1,), num_tasks=1)))

    assert "Exact match 100.0%" in page
    assert "Difference" not in page


def test_a_score_that_only_the_second_pool_has_is_shown(tmp_path: Path) -> None:
    report = json.loads(make_report_file())
    del report["pools"][0]["scores"]["syntax_valid"]
    del report["difference"]["syntax_valid"]

    lines = {row[0]: row for row in _rows(_store(tmp_path, json.dumps(report).encode()))}

    # The second pool's score with its interval, and no difference.
    assert lines["Valid syntax"][2:] == ["100.0% 91.2% to 100.0%", "–", ""]


def test_the_csv_file_has_a_line_for_each_pool(tmp_path: Path) -> None:
    _store(tmp_path, make_report_file())

    header, first, second = (
        signed_in().client.get("/operators/evaluations?as=csv").content.decode().splitlines()[:3]
    )

    assert header.startswith("id,title,created_at,suite,pool,model")
    assert "fast:psm" not in first.split(",")
    assert "fast:psm" in second.split(",")


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        (b"", "not a report"),
        (b"\xff", "not a report"),
        (b"[]", "not a report"),
        (b'{"suite": "infilling", "pools": []}', "not a report"),
        (make_report_file(suite="a\0b"), "not a report"),
        (make_report_file(difference={"a\0b": _DIFFERENCE}), "not a report"),
        (make_report_file(pools=json.loads(make_report_file())["pools"] * 2), "not a report"),
        (b" " * 1_000_001, "at most 1,000,000 bytes"),
    ],
    ids=[
        "empty",
        "not UTF-8",
        "a list",
        "no pools",
        "a NUL in the name of the suite",
        "a NUL in the name of a score",
        "four pools",
        "too large",
    ],
)
def test_a_file_that_is_not_a_report_is_refused(
    tmp_path: Path, report: bytes, problem: str
) -> None:
    before = Evaluation.objects.count()

    with pytest.raises(CommandError, match=problem):
        _store(tmp_path, report)

    assert Evaluation.objects.count() == before


@pytest.mark.parametrize("title", ["", " ", "x" * (MAX_TITLE_CHARS + 1), "a\0b"])
def test_an_invalid_title_is_refused(tmp_path: Path, title: str) -> None:
    before = Evaluation.objects.count()

    with pytest.raises(CommandError):
        _store(tmp_path, make_report_file(), title=title)

    assert Evaluation.objects.count() == before


def test_a_missing_file_is_named() -> None:
    with pytest.raises(CommandError, match="/none cannot be read"):
        call_command("store_evaluation", "/none")


def test_markup_in_a_report_is_escaped(tmp_path: Path) -> None:
    page = _store(tmp_path, make_report_file(suite="<b>"), title="<img src=x>")

    for path in ("/operators/evaluations", page):
        html = signed_in().client.get(path).content.decode()
        assert "<img src=x>" not in html
        assert "&lt;b&gt;" in html
        assert "<b>" not in html


@pytest.mark.parametrize("path", ["/operators/evaluations", _UNKNOWN])
def test_only_operators_open_the_pages(path: str) -> None:
    response = Client().get(path)

    assert response.status_code == 302
    assert response["Location"].startswith("/operators/sign-in")


def test_an_unknown_evaluation_is_not_found_and_an_invalid_cursor_is_refused() -> None:
    assert signed_in().client.get(_UNKNOWN).status_code == 404
    assert signed_in().client.get("/operators/evaluations?cursor=x").status_code == 400
