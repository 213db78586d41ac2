"""A tag in the environment of every process below one supervisor.

Descendants inherit it, whatever sessions and process groups they create. So /proc lists everything
that a supervisor has started, and no list can become stale. The tag is `<digest of
CARET_HOME>.<random>`. So a new supervisor finds what an earlier one left behind, but has another
tag.
"""

import hashlib
import os
import secrets
import signal
import time
from pathlib import Path

VARIABLE = "CARET_SUPERVISOR_TAG"
_POLL_S = 0.02


def home_digest(home: Path) -> str:
    return hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:16]


def new_tag(home: Path) -> str:
    return f"{home_digest(home)}.{secrets.token_hex(8)}"


def tag_environment(tag: str) -> dict[str, str]:
    """Return the variables to add to a child's environment."""
    # setproctitle (Celery, vLLM) overwrites the environment with the process title unless disabled.
    return {VARIABLE: tag, "SPT_NOENV": "1"}


def find_tagged_pids(prefix: str) -> list[int]:
    """Return PIDs of other live processes whose tag begins with `prefix`, without zombies."""
    entry_start = f"{VARIABLE}={prefix}".encode()
    return [pid for pid in _all_pids() if pid != os.getpid() and _has_tag(pid, entry_start)]


def terminate_tagged(prefix: str, *, grace_s: float) -> int:
    """Send SIGTERM to processes whose tag begins with `prefix`, SIGKILL after `grace_s`.

    Returns the number of processes.
    """
    first = _signal_tagged(prefix, signal.SIGTERM)
    deadline_s = time.monotonic() + grace_s
    while first and time.monotonic() < deadline_s:
        if not find_tagged_pids(prefix):
            return first
        time.sleep(_POLL_S)
    # Repeated, because a process may fork between the listing and the signal.
    while _signal_tagged(prefix, signal.SIGKILL):
        time.sleep(_POLL_S)
    return first


def _signal_tagged(prefix: str, number: signal.Signals) -> int:
    pids = find_tagged_pids(prefix)
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue  # it has ended meanwhile
    return len(pids)


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _has_tag(pid: int, entry_start: bytes) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False  # ended, or another user's: not ours in either case
    return any(entry.startswith(entry_start) for entry in environment.split(b"\0"))
