"""The mark that every process below one supervisor carries in its environment.

Descendants inherit it, grandchildren too, whatever sessions and groups they make for themselves. So
"everything that this supervisor started" is a question to /proc, and needs no list that could be
stale. The mark is `<digest of the home>.<random>`: a new supervisor of a home recognises what an
earlier one left behind, and is never mistaken for it.
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


def environment_with(mark: str) -> dict[str, str]:
    """To be added to a child's environment."""
    # setproctitle (Celery, vLLM) writes a process's title over its environment unless told not to.
    return {VARIABLE: mark, "SPT_NOENV": "1"}


def find_tagged_pids(prefix: str) -> list[int]:
    """Living processes whose mark begins so, not this one; zombies have no environment left."""
    wanted = f"{VARIABLE}={prefix}".encode()
    return [pid for pid in _all_pids() if pid != os.getpid() and _carries(pid, wanted)]


def terminate_tagged(prefix: str, *, grace_s: float) -> int:
    """SIGTERM, and after `grace_s` SIGKILL, to all whose mark begins so. Returns how many."""
    first = _signal_marked(prefix, signal.SIGTERM)
    deadline_s = time.monotonic() + grace_s
    while first and time.monotonic() < deadline_s:
        if not find_tagged_pids(prefix):
            return first
        time.sleep(_POLL_S)
    # Again and again: a process may fork between the look and the signal.
    while _signal_marked(prefix, signal.SIGKILL):
        time.sleep(_POLL_S)
    return first


def _signal_marked(prefix: str, number: signal.Signals) -> int:
    pids = find_tagged_pids(prefix)
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue  # it ended by itself meanwhile
    return len(pids)


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _carries(pid: int, wanted: bytes) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False  # gone, or another user's: not ours in either case
    return any(entry.startswith(wanted) for entry in environment.split(b"\0"))
