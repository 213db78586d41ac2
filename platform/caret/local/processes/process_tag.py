"""A tag in the environment of all processes that a supervisor has started, directly or indirectly.

Child processes inherit the tag, even if they create sessions and process groups. So the supervisor
finds all of them in /proc, and needs no list, which could become outdated.

The tag is `<digest of CARET_HOME>.<random>`. Each supervisor has its own tag. With the digest, it
finds the processes that an earlier supervisor of the same CARET_HOME left behind.
"""

import hashlib
import os
import secrets
import signal
import time
from pathlib import Path

VARIABLE = "CARET_SUPERVISOR_TAG"  # name of the environment variable
_POLL_S = 0.02


def home_digest(home: Path) -> str:
    """Return the first part of the tag, 16 hex digits."""
    return hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:16]


def new_tag(home: Path) -> str:
    return f"{home_digest(home)}.{secrets.token_hex(8)}"


def tag_environment(tag: str) -> dict[str, str]:
    """Return the variables to add to a child's environment."""
    # SPT_NOENV: setproctitle (used by Celery and vLLM) does not overwrite the environment with the
    # title of the process.
    return {VARIABLE: tag, "SPT_NOENV": "1"}


def find_tagged_pids(prefix: str) -> list[int]:
    """Return PIDs of other live processes whose tag begins with `prefix`, without zombies."""
    entry_start = f"{VARIABLE}={prefix}".encode()
    return [pid for pid in _all_pids() if pid != os.getpid() and _has_tag(pid, entry_start)]


def terminate_tagged(prefix: str, *, grace_s: float) -> int:
    """Send SIGTERM to processes whose tag begins with `prefix`, and SIGKILL after `grace_s`.

    Return the number of processes that got SIGTERM.
    """
    num_processes = _send_signal_to_tagged(prefix, signal.SIGTERM)
    deadline_s = time.monotonic() + grace_s
    while num_processes and time.monotonic() < deadline_s:
        if not find_tagged_pids(prefix):
            return num_processes
        time.sleep(_POLL_S)
    # Repeated, because a process may fork after the processes were listed.
    while _send_signal_to_tagged(prefix, signal.SIGKILL):
        time.sleep(_POLL_S)
    return num_processes


def _send_signal_to_tagged(prefix: str, number: signal.Signals) -> int:
    pids = find_tagged_pids(prefix)
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue  # it ended after it was listed
    return len(pids)


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _has_tag(pid: int, entry_start: bytes) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False  # the process has ended, or belongs to another user
    return any(entry.startswith(entry_start) for entry in environment.split(b"\0"))
