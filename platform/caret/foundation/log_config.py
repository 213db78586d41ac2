"""Structured logs: one JSON line per event, with fields. Caret's own events have a dotted name.

Logs never contain customers' code or secrets. Only the type and the location of an exception are
logged. Its message may quote content (Postgres quotes the rejected row), and so may the local
variables of a traceback. Several libraries log URLs at INFO, and the data of network connections at
DEBUG, so their loggers are limited to WARNING. Django's messages about responses with an error
status contain the path, and the path of an invitation link contains a token. Such a message is
replaced by `request.refused` or, for a status of 500 or above, by `request.failed`. A message of
Celery about an error is replaced by `task.failed` and the task's name. If the task is tried again,
the event is `task.retried`. If the error was not raised by a task, it is `celery.failed`, with the
logger's name.
"""

import logging
import sys
import traceback
from pathlib import Path

import structlog

_NOISY_LIBRARIES = ("websockets", "aiohttp", "asyncio", "urllib3", "httpx")


def configure_logging(process: str) -> None:
    """Send the logs of this process and its libraries to standard error as JSON lines.

    `process` is the name of the process in each line.
    """
    shared_processors: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _name_process(process),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared_processors,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _describe_exception,
            structlog.processors.JSONRenderer(),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    handler.addFilter(_replace_message)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _NOISY_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared_processors, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def describe(error: BaseException) -> dict[str, str]:
    """Return an error's type and location as log fields. Its message may quote content."""
    frames = traceback.extract_tb(error.__traceback__)
    locations = (f"{Path(frame.filename).name}:{frame.lineno}:{frame.name}" for frame in frames)
    return {"error": type(error).__name__, "trace": " > ".join(locations)}


def _replace_message(record: logging.LogRecord) -> bool:
    """Replace Celery's messages about errors, and Django's about responses with errors.

    They may quote content. Return True, so that the handler keeps the record.
    """
    if record.name.startswith("celery."):
        _replace_celery_message(record)
    elif record.name.startswith("django.") and (status := getattr(record, "status_code", None)):
        event = "request.failed" if status >= 500 else "request.refused"
        record.msg, record.args = "%s: %s", (event, status)
    return True


def _replace_celery_message(record: logging.LogRecord) -> None:
    # Only a record about a task has `data`, the values for formatting the message. Other errors
    # report for example that a message of the broker cannot be decoded.
    data = getattr(record, "data", {})
    task = data.get("name")
    if record.exc_info:
        event, name = ("task.failed", task) if task else ("celery.failed", record.name)
        record.msg, record.args = "%s: %s", (event, name)
    elif "exc" in data:  # the text of the error, in a record without the error itself
        record.msg, record.args = "%s: %s", ("task.retried", task)


def _describe_exception(
    _logger: structlog.types.WrappedLogger, _method: str, event: structlog.types.EventDict
) -> structlog.types.EventDict:
    # True: the exception that is being handled. A tuple: its type, itself and its traceback.
    exc_info = event.pop("exc_info", None)
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if exc_info is True:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        event.update(describe(error))
    return event


def _name_process(process: str) -> structlog.types.Processor:
    def add_process(
        _logger: structlog.types.WrappedLogger, _method: str, event: structlog.types.EventDict
    ) -> structlog.types.EventDict:
        event["process"] = process
        return event

    return add_process
