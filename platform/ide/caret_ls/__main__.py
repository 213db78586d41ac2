"""`caret-ls`: the language server on standard input and output, started by an editor."""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from caret_ls import VERSION
from caret_ls.server import make_server

_MAX_LOG_BYTES: Final = 1_000_000
_LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="caret-ls",
        description="Caret's language server. Editors start it.",
        epilog="Settings, API keys and editors: platform/docs/editors.md.",
    )
    parser.add_argument("--version", action="version", version=f"caret-ls {VERSION}")
    # Some editors pass this to every server.
    parser.add_argument(
        "--stdio", action="store_true", help="no effect: stdin and stdout are always used"
    )
    parser.add_argument("--log", type=Path, default=_log_file(), help="log file")
    options = parser.parse_args(arguments)
    _set_up_log(options.log)
    make_server().start_io()
    return 0


def _log_file(environment: Mapping[str, str] = os.environ) -> Path:
    home = environment.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local/state") / "caret" / "caret-ls.log"


def _set_up_log(file: Path) -> None:
    """Log this package's events to `file`. They contain no code.

    The loggers of three libraries are silenced, because they log the contents of messages.
    """
    logger = logging.getLogger("caret_ls")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for name in ("pygls", "asyncio", "websockets"):
        library_logger = logging.getLogger(name)
        library_logger.propagate = False
        library_logger.handlers = [logging.NullHandler()]
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = RotatingFileHandler(
            file, maxBytes=_MAX_LOG_BYTES, backupCount=1, encoding="utf-8"
        )
    except OSError:  # such as a read-only home directory: run without a log
        logger.addHandler(logging.NullHandler())
        return
    handler.setFormatter(logging.Formatter(_LOG_FORMAT))
    logger.addHandler(handler)


if __name__ == "__main__":
    sys.exit(main())
