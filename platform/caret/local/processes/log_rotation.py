"""Log files of child processes: for each, the current file and the previous one (`.1`)."""

import shutil
from pathlib import Path

MAX_LOG_BYTES = 8 * 1024 * 1024
_TAIL_BYTES = 4096


def rotate_at_start(log_file: Path, *, max_bytes: int = MAX_LOG_BYTES) -> None:
    """Rename the log if it is large, so that the child starts a new file. Create the folder."""
    log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if log_file.exists() and log_file.stat().st_size > max_bytes:
        log_file.replace(_older_file(log_file))


def rotate_while_open(log_file: Path, *, max_bytes: int = MAX_LOG_BYTES) -> None:
    """Copy a large log and truncate it.

    The child has the file open, so after a rename it would continue to write to the old file. Lines
    written between the copy and the truncation are lost, which is acceptable for these logs.
    """
    if log_file.exists() and log_file.stat().st_size > max_bytes:
        shutil.copyfile(log_file, _older_file(log_file))
        with log_file.open("r+b") as stream:
            stream.truncate(0)


def read_tail(log_file: Path, *, max_lines: int = 12) -> str:
    """Return the last lines, for an error message; "" if the file is missing."""
    if not log_file.exists():
        return ""
    with log_file.open("rb") as stream:
        stream.seek(max(0, log_file.stat().st_size - _TAIL_BYTES))
        text = stream.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-max_lines:])


def _older_file(log_file: Path) -> Path:
    return log_file.with_name(log_file.name + ".1")
