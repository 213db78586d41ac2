"""A build of a public-code index that fails stores an error that says why."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from caret.contracts.public_code import SCHEMA, IndexStatus, PublicCodeIndexChange
from tenants.fleet import public_code

REQUEST = PublicCodeIndexChange(
    schema=SCHEMA,
    name="linux",
    folder="kernels",
    status=IndexStatus.BUILDING,
    is_running=False,
    num_files=0,
    num_hashes=0,
    error="",
    operator="ola",
    reason="Ticket 4711",
    at_ms=1,
)


def build(
    folder: Path, monkeypatch: pytest.MonkeyPatch, result: str | Exception
) -> PublicCodeIndexChange:
    """Build the index with a builder that prints `result` or raises it."""

    def run(command: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        if isinstance(result, Exception):
            raise result
        return subprocess.CompletedProcess(command, 0, stdout=result, stderr="")

    monkeypatch.setattr("subprocess.run", run)
    with override_settings(PUBLIC_CODE_FOLDER=folder):
        return public_code._build(REQUEST)


def test_a_complete_result_makes_the_index_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = build(tmp_path, monkeypatch, '{"num_files": 3, "num_hashes": 70}')

    assert (index.status, index.num_files, index.num_hashes) == (IndexStatus.READY, 3, 70)


@pytest.mark.parametrize("result", ["{}", "[]", '{"num_files": 3, "num_hashes": null}'])
def test_a_result_without_numbers_is_an_error_of_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: str
) -> None:
    index = build(tmp_path, monkeypatch, result)

    assert index.status is IndexStatus.FAILED
    assert index.error == "The builder printed no numbers of files and hashes."


def test_a_build_that_takes_too_long_names_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeout = subprocess.TimeoutExpired("builder", 86_400.0, stderr=b"1,000 files\n")

    index = build(tmp_path, monkeypatch, timeout)

    assert index.status is IndexStatus.FAILED
    assert index.error == "The build did not finish within 24 hours."


def test_the_last_line_of_the_builders_errors_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = subprocess.CalledProcessError(1, "builder", stderr="Reading\nThe disk is full.\n")

    index = build(tmp_path, monkeypatch, failure)

    assert (index.status, index.error) == (IndexStatus.FAILED, "The disk is full.")
