"""`caret GROUP COMMAND` calls the REST API with a service key. Here, the API is in this process."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.wsgi import get_wsgi_application
from django.db import connections

from caret.client.api.cli import EXIT_REFUSED, run
from tenants.identity.api_keys.scopes import KeyScope
from tests.fakes.exports import build_exports
from tests.fixtures.companies import (
    GLOBEX_PEOPLE,
    Company,
    make_company,
    make_key,
    make_service_key,
)

# A key cannot create a key with more permissions than its own.
KEY_CREATION_SCOPES = (KeyScope.KEYS_WRITE, KeyScope.INFERENCE)


@pytest.fixture
def company() -> Company:
    return make_company("hooli", GLOBEX_PEOPLE)


def run_caret(
    company: Company, *argv: str, scopes: tuple[KeyScope, ...] = KEY_CREATION_SCOPES
) -> int:
    environment = {
        "CARET_CONSOLE_URL": "http://127.0.0.1",
        "CARET_SERVICE_KEY": make_service_key(company, *scopes).text,
    }
    transport = httpx.WSGITransport(get_wsgi_application(), remote_addr="192.0.2.7")
    return run(argv, environment, transport=transport)


def printed_json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_key_is_created_and_listed(company: Company, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_caret(company, "keys", "create", "--name", "Build server", "--kind", "svc") == 0
    created = printed_json(capsys)
    assert run_caret(company, "keys", "list", "--limit", "200") == 0

    listed_ids = {row["lookup_id"] for row in printed_json(capsys)["items"]}
    assert created["key"]["lookup_id"] in listed_ids
    assert created["text"].startswith("cpk_svc_")


def test_the_option_all_lists_every_page(
    company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        make_key(company, company.developer)

    run_caret(company, "keys", "list", "--all", "--limit", "1")

    pages = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [len(page["items"]) for page in pages] == [1] * len(pages)
    assert len(pages) >= 4  # the three keys, and the service key of the command


def test_a_command_beyond_the_keys_scopes_is_refused(
    company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_caret(company, "audit", "list") == EXIT_REFUSED
    assert "forbidden" in capsys.readouterr().err


def test_the_retention_report_is_written_to_a_file(company: Company, tmp_path: Path) -> None:
    file = tmp_path / "retention.json"

    run_caret(company, "--out", str(file), "retention", "list", scopes=(KeyScope.RETENTION_READ,))

    classes = json.loads(file.read_text())["classes"]
    assert {"usage_records", "audit_entries"} <= {
        data_class["data_class"] for data_class in classes
    }


@contextmanager
def export_worker(company: Company) -> Iterator[None]:
    """Run a worker that builds requested exports."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.wait(0.1):
            build_exports(company)
        connections.close_all()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        is_over.set()
        worker.join()


def test_a_month_of_usage_is_exported_downloaded_and_verified(
    company: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scopes = (KeyScope.EXPORTS, KeyScope.USAGE_READ)
    with export_worker(company):
        code = run_caret(
            company,
            *("export", "usage", "--month", "2026-10", "--format", "ndjson"),
            *("--into", str(tmp_path), "--max-wait-s", "300"),
            scopes=scopes,
        )

    assert code == 0
    file = Path(printed_json(capsys)["file"])
    proof = json.loads(file.with_name(file.name + ".proof.json").read_bytes())
    assert proof["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (proof["since"][:10], proof["until"][:10]) == ("2026-10-01", "2026-11-01")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        file.name,
        f"{file.name}.proof.json",
    ]


def test_an_export_beyond_the_keys_scopes_is_refused(
    company: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("export", "evidence", "--month", "2026-10", "--into", str(tmp_path))

    assert run_caret(company, *arguments, scopes=(KeyScope.EXPORTS,)) == EXIT_REFUSED
    assert "forbidden" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
