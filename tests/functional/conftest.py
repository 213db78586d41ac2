"""Installations of Caret that tests start with `manage.py`, as a user does."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from caret.local.engines.engine import DEMO_MODEL, MAX_CONTEXT_TOKENS
from caret.local.engines.pools_file import render_pools
from caret.local.paths import REPOSITORY, EmbeddedPaths
from caret.local.ports import LOOPBACK
from caret.local.processes.process_tag import find_tagged_pids, home_digest, terminate_tagged
from caret.local.state_file import RunningInstallation, read_up_file
from tests.stack.commands import environment_for, manage
from tests.stack.django_setup import pytest_configure as pytest_configure
from tests.stack.ports import free_ports


@dataclass(frozen=True, slots=True)
class Installation:
    """The home folder and the settings of an installation, which may be running or not."""

    paths: EmbeddedPaths
    environment: dict[str, str]

    @property
    def entry(self) -> RunningInstallation:
        entry = read_up_file(self.paths.up_file)
        assert entry is not None, "the installation is not running"
        return entry

    @property
    def pids(self) -> list[int]:
        """Return the PIDs of all processes that carry this installation's tag."""
        return find_tagged_pids(home_digest(self.paths.home))

    @property
    def process_tree(self) -> set[int]:
        """Return the PIDs of the supervisor and all its descendants, tagged or not."""
        parents = _parents()
        pids = {self.entry["supervisor_pid"]}
        while children := {pid for pid, parent in parents.items() if parent in pids} - pids:
            pids |= children
        return pids

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return manage(*arguments, environment=self.environment)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(REPOSITORY / "manage.py"), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )


def still_running(pids: set[int]) -> set[int]:
    """Return the PIDs of the processes that still run.

    Zombies do not count: they have ended, but nobody has waited for them yet.
    """
    return pids & _parents().keys()


def _parents() -> dict[int, int]:
    """Return the PID of the parent of every process, without zombies."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process ended meanwhile
            # State and parent follow the name in parentheses, which may contain anything.
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(folder.name)] = int(parent)
    return parents


@pytest.fixture(scope="module")
def new_installation() -> Iterator[Installation]:
    """Return an installation that has not been started yet."""
    # This folder is removed at the end, because it contains whole databases.
    with tempfile.TemporaryDirectory(prefix="caret-up-") as folder:
        home = Path(folder) / "home"
        installation = Installation(EmbeddedPaths(home), environment_for(home, ports=free_ports(3)))
        try:
            yield installation
        finally:
            installation.manage("down")
            terminate_tagged(home_digest(home), grace_s=1.0)


@pytest.fixture(scope="module")
def installation_without_engine(new_installation: Installation) -> Installation:
    """Return an installation whose engine has an address at which nothing listens.

    It is for tests that need no engine.
    """
    pools_file = new_installation.paths.home.parent / "pools.toml"
    pools_file.write_text(
        render_pools(
            model="absent",
            tokenizer=str(DEMO_MODEL),
            max_context_tokens=MAX_CONTEXT_TOKENS,
            replicas=[f"http://{LOOPBACK}:{new_installation.environment['CARET_ENGINE_PORT']}"],
        )
    )
    new_installation.environment["CARET_POOLS_FILE"] = os.fspath(pools_file)
    return new_installation
