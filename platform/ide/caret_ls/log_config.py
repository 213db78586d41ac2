"""A log without code: dotted events with fields, in a file of the user."""

import logging
import os
from collections.abc import Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

_MAX_BYTES: Final = 1_000_000
_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


def log_file(environment: Mapping[str, str] = os.environ) -> Path:
    home = environment.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local/state") / "caret" / "caret-ls.log"


def begin_log(file: Path) -> None:
    """Log only this package's events, because protocol libraries log message contents."""
    ours = logging.getLogger("caret_ls")
    ours.setLevel(logging.INFO)
    ours.propagate = False
    for name in ("pygls", "asyncio", "websockets"):
        theirs = logging.getLogger(name)
        theirs.propagate = False
        theirs.handlers = [logging.NullHandler()]
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = RotatingFileHandler(file, maxBytes=_MAX_BYTES, backupCount=1, encoding="utf-8")
    except OSError:  # a read-only home directory: run without a log
        ours.addHandler(logging.NullHandler())
        return
    handler.setFormatter(logging.Formatter(_FORMAT))
    ours.addHandler(handler)
