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
SECRET_CODE = "def secret_of_acme(): ..."
# The beginning of each program. `fail` raises an error whose message quotes a customer's code.
PREAMBLE = f"""
import logging, structlog
from caret.foundation.log_config import configure_logging
configure_logging("test")
def fail():
    raise ValueError("Failing row contains ({SECRET_CODE}).")
"""


def run_and_read_log(code: str) -> list[dict[str, Any]]:
    """Run a program, and return its log lines as a log collector reads them."""
    result = subprocess.run(
        [sys.executable, "-c", PREAMBLE + code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "platform")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [json.loads(line) for line in result.stderr.splitlines()]


def test_each_line_is_an_event_with_fields() -> None:
    our_record, library_record = run_and_read_log(
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
def test_an_exception_is_logged_with_its_type_and_place_but_without_its_message(name: str) -> None:
    lines = run_and_read_log(
        "try:\n    fail()\nexcept ValueError as error:\n"
        f'    logging.getLogger("{name}").exception("Internal Server Error")\n'
        f'    structlog.get_logger("{name}").exception("it.failed")\n'
        f'    logging.getLogger("{name}").error("It failed.", exc_info=error)'
    )

    assert SECRET_CODE not in json.dumps(lines)
    assert [line["error"] for line in lines] == ["ValueError"] * 3
    assert all(line["trace"].endswith(":fail") for line in lines)


def test_a_failed_task_is_logged_with_its_name_but_without_its_error_message() -> None:
    (line,) = run_and_read_log(
        "from celery.app.trace import LOG_FAILURE\n"
        "try:\n    fail()\nexcept ValueError as error:\n"
        '    context = {"name": "tenants.billing.tasks.rate_usage", "id": "1", "exc": error,'
        '               "description": "raised unexpected"}\n'
        '    logging.getLogger("celery.app.trace").error(LOG_FAILURE, context, exc_info=error,'
        '               extra={"data": context})'
    )

    assert SECRET_CODE not in json.dumps(line)
    assert line["event"] == "task.failed: tenants.billing.tasks.rate_usage"
    assert line["error"] == "ValueError"


def test_a_retried_task_is_logged_without_its_error_message() -> None:
    (line,) = run_and_read_log(
        "from celery.app.trace import LOG_RETRY, info\n"
        "try:\n    fail()\nexcept ValueError as error:\n"
        '    info(LOG_RETRY, {"id": "1", "name": "tenants.fleet.tasks.scrape", "exc": str(error)})'
    )

    assert SECRET_CODE not in json.dumps(line)
    assert line["event"] == "task.retried: tenants.fleet.tasks.scrape"


def test_an_error_of_celery_outside_tasks_is_not_logged_as_a_failed_task() -> None:
    (line,) = run_and_read_log(
        "try:\n    fail()\nexcept ValueError as error:\n"
        '    logger = logging.getLogger("celery.worker.consumer.consumer")\n'
        '    logger.critical("Cannot decode message: %r", error, exc_info=error)'
    )

    assert SECRET_CODE not in json.dumps(line)
    assert line["event"] == "celery.failed: celery.worker.consumer.consumer"
    assert line["error"] == "ValueError"


def test_the_path_of_a_request_is_not_logged() -> None:
    (line,) = run_and_read_log(
        "from django.conf import settings; settings.configure(LOGGING_CONFIG=None)\n"
        "from django.http import HttpResponseNotFound, HttpRequest\n"
        "from django.utils.log import log_response\n"
        "request = HttpRequest(); request.path = '/invitation/THE-TOKEN'\n"
        "log_response('%s: %s', 'Not Found', request.path, request=request,"
        " response=HttpResponseNotFound())"
    )

    assert "THE-TOKEN" not in json.dumps(line)
    assert line["event"] == "request.refused: 404"


def test_a_failed_request_is_not_logged_as_refused() -> None:
    (line,) = run_and_read_log(
        "from django.conf import settings; settings.configure(LOGGING_CONFIG=None)\n"
        "from django.http import HttpResponseServerError, HttpRequest\n"
        "from django.utils.log import log_response\n"
        "log_response('%s: %s', 'Error', '/', request=HttpRequest(),"
        " response=HttpResponseServerError())"
    )

    assert line["event"] == "request.failed: 500"
