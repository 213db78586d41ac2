"""Log lines of the processes report events without quoting data.

Each test starts a process that logs: the configuration of logging is global to a process, and
pytest has its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PLANTED = "def secret_of_acme(): ..."
START = f"""
import logging, structlog
from caret.foundation.log_config import configure_logging
configure_logging("test")
def fail():
    raise ValueError("Failing row contains ({PLANTED}).")
"""


def logged(code: str) -> list[dict[str, Any]]:
    """Return the lines as a log collector reads them."""
    result = subprocess.run(
        [sys.executable, "-c", START + code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "platform")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [json.loads(line) for line in result.stderr.splitlines()]


def test_each_line_is_an_event_with_fields() -> None:
    our_record, library_record = logged(
        'structlog.get_logger("a").info("snapshot.republished", tenant_id="t")\n'
        'logging.getLogger("b").warning("%s of %s", 1, 2)'
    )

    assert (our_record["event"], our_record["tenant_id"], our_record["process"]) == (
        "snapshot.republished",
        "t",
        "test",
    )
    assert (library_record["event"], library_record["level"]) == ("1 of 2", "warning")


@pytest.mark.parametrize("name", ["django.request", "uvicorn.error", "tenants.usage"])
def test_an_exception_is_logged_by_type_and_place(name: str) -> None:
    lines = logged(
        "try:\n    fail()\nexcept ValueError as error:\n"
        f'    logging.getLogger("{name}").exception("Internal Server Error")\n'
        f'    structlog.get_logger("{name}").exception("it.failed")\n'
        f'    logging.getLogger("{name}").error("It failed.", exc_info=error)'
    )

    assert PLANTED not in json.dumps(lines)
    assert [line["error"] for line in lines] == ["ValueError"] * 3
    assert all(line["trace"].endswith(":fail") for line in lines)


def test_a_failed_task_is_logged_by_name() -> None:
    (line,) = logged(
        "from celery.app.trace import LOG_FAILURE\n"
        "try:\n    fail()\nexcept ValueError as error:\n"
        '    context = {"name": "tenants.billing.tasks.rate_usage", "id": "1", "exc": error,'
        '               "description": "raised unexpected"}\n'
        '    logging.getLogger("celery.app.trace").error(LOG_FAILURE, context, exc_info=error,'
        '               extra={"data": context})'
    )

    assert PLANTED not in json.dumps(line)
    assert line["event"] == "task.failed: tenants.billing.tasks.rate_usage"
    assert line["error"] == "ValueError"


def test_the_path_of_a_request_is_not_logged() -> None:
    (line,) = logged(
        "from django.conf import settings; settings.configure(LOGGING_CONFIG=None)\n"
        "from django.http import HttpResponseNotFound, HttpRequest\n"
        "from django.utils.log import log_response\n"
        "request = HttpRequest(); request.path = '/invitation/THE-TOKEN'\n"
        "log_response('%s: %s', 'Not Found', request.path, request=request,"
        " response=HttpResponseNotFound())"
    )

    assert "THE-TOKEN" not in json.dumps(line)
    assert line["event"] == "request.refused: 404"
