"""Structured logs: one JSON line an event, dotted names, fields, never customers' code or keys.

Tracebacks carry no local variables (they hold prompts), and foreign loggers are kept at WARNING:
at DEBUG several libraries print frames and bodies.
"""

import logging
import sys
import traceback
from pathlib import Path

import structlog

_QUIET = ("websockets", "aiohttp", "asyncio", "urllib3", "httpx")


def configure_logging(process: str) -> None:
    """Sends this process's logs, its libraries' included, to standard error as JSON lines."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _name_process(process),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def describe(error: BaseException) -> dict[str, str]:
    """The kind and place of an error as log fields; not its message, which may quote content."""
    frames = traceback.extract_tb(error.__traceback__)
    places = (f"{Path(frame.filename).name}:{frame.lineno}:{frame.name}" for frame in frames)
    return {"error": type(error).__name__, "trace": " > ".join(places)}


def _name_process(process: str) -> structlog.types.Processor:
    def add(
        _logger: structlog.types.WrappedLogger, _method: str, event: structlog.types.EventDict
    ) -> structlog.types.EventDict:
        event["process"] = process
        return event

    return add
