"""Selects a user for Postgres, which refuses to run as root.

It selects the first of these three ways that the machine allows:

* PLAIN       the current user, which is not root
* NAMESPACE   a user namespace in which root appears as `nobody`. Files still belong to root.
* CAPABILITY  the user `nobody`, with the capability to access root's private directories. This is
              for containers, whose default seccomp profile forbids user namespaces. The files of
              Postgres then belong to `nobody`.

The choice may change between two runs, for instance if a host starts Postgres with the data
directory of a container. So `take_ownership` runs at each start.
"""

import os
import shutil
import signal
import subprocess
from enum import Enum
from pathlib import Path

from caret.local.errors import MissingFeature
from caret.local.processes.child_process import dying_with_parent

NOBODY = 65534  # the kernel's overflow ID: `nobody` on every Linux distribution
_PROBE_TIMEOUT_S = 10.0
# Sent when the supervisor dies. At SIGQUIT, Postgres stops at once and removes its shared memory.
_ORPHAN_SIGNAL = signal.SIGQUIT


class PostgresUser(Enum):
    PLAIN = "plain"
    NAMESPACE = "namespace"
    CAPABILITY = "capability"

    def wrap(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """Wrap `command`: it runs as this user, and gets a signal when the supervisor dies."""
        # The innermost command must request the signal: a change of user would reset the request.
        return (*_PREFIXES[self], *dying_with_parent(command, stop_signal=_ORPHAN_SIGNAL))

    def take_ownership(self, root: Path) -> None:
        """Make the user of Postgres the owner of a file, or of a directory and its content.

        Do nothing if the current user is not root.
        """
        if os.getuid() != 0:
            return
        owner = NOBODY if self is PostgresUser.CAPABILITY else 0
        if root.stat().st_uid == owner:
            return
        for path in (root, *root.rglob("*")):
            os.chown(path, owner, owner, follow_symlinks=False)


_PREFIXES: dict[PostgresUser, tuple[str, ...]] = {
    PostgresUser.PLAIN: (),
    PostgresUser.NAMESPACE: (
        "unshare",
        "-U",
        f"--map-user={NOBODY}",
        f"--map-group={NOBODY}",
        "--",
    ),
    PostgresUser.CAPABILITY: (
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
        "--",
    ),
}


def choose_user() -> PostgresUser:
    """Return the first user with which Postgres can run.

    Raises MissingFeature if the current user is root and neither other way is possible.
    """
    if os.getuid() != 0:
        return PostgresUser.PLAIN
    for user in (PostgresUser.NAMESPACE, PostgresUser.CAPABILITY):
        if _is_usable(user):
            return user
    raise MissingFeature(
        "Postgres refuses to run as root, and this machine allows neither user namespaces (unshare)"
        " nor a change of user (setpriv). Start Caret as an ordinary user."
    )


def _is_usable(user: PostgresUser) -> bool:
    command = (*_PREFIXES[user], "true")
    if shutil.which(command[0]) is None:
        return False
    probe = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PROBE_TIMEOUT_S,
        check=False,
    )
    return probe.returncode == 0
