"""`make dev`: saved changes appear without a manual restart, and the databases keep running."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from caret.local.paths import REPOSITORY
from tests.faults.scratch import Scratch, scratch_copy
from tests.functional.conftest import Installation
from tests.stack.waiting import wait_until

pytestmark = pytest.mark.deep  # starts an installation, and restarts its console and its gateway

# A restart takes seconds on a quiet machine, but other tests may leave it little CPU time.
_RESTART_TIMEOUT_S = 90.0
# Appended to console/urls.py: a new page.
_NEW_VIEW = """
from django.http import HttpResponse
urlpatterns.append(path("new-view", lambda request: HttpResponse("a new view")))
"""


@dataclass(frozen=True, slots=True)
class Development:
    """An installation that runs as with `make dev`, in a copy of the repository."""

    installation: Installation
    scratch: Scratch
    output: Path  # the terminal's output

    def append(self, file: str, text: str) -> str:
        """Append the text to the file; return the text before."""
        path = self.scratch.root / file
        before = path.read_text()
        path.write_text(before + text)
        return before

    def shows(self, text: str, *, at: str) -> bool:
        """Return True if the console's page at this path contains the text."""
        url = self.installation.entry["console_url"] + at
        try:
            with urllib.request.urlopen(url) as response:  # noqa: S310  # of this machine
                return text in response.read().decode()
        except OSError:  # the console is restarting, or has no such page
            return False

    def has_output(self, text: str) -> bool:
        return text in self.output.read_text()

    @property
    def postgres_pid(self) -> str:
        (file,) = self.installation.paths.home.rglob("postmaster.pid")
        return file.read_text().splitlines()[0]


@pytest.fixture(scope="module")
def development(installation_without_engine: Installation) -> Iterator[Development]:
    installation = installation_without_engine
    with scratch_copy(REPOSITORY) as scratch:
        output = installation.paths.home.parent / "output"
        environment = {
            **installation.environment,
            "PYTHONPATH": scratch.environment["PYTHONPATH"],  # imports the code of the copy
            "CARET_RELOAD": "True",  # as `make dev` sets it
        }
        with (
            output.open("w") as stream,
            subprocess.Popen(
                [sys.executable, str(scratch.root / "manage.py"), "up"],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=environment,
            ) as supervisor,
        ):
            development = Development(installation, scratch, output)
            try:
                # The last line that `up` prints before it waits.
                wait_until(lambda: development.has_output("Ctrl-C stops everything"), timeout_s=300)
                yield development
            finally:
                supervisor.terminate()


def test_a_saved_template_appears_in_the_next_response_and_a_saved_view_after_a_restart(
    development: Development,
) -> None:
    postgres_pid = development.postgres_pid
    assert development.shows("Sign in", at="/sign-in")

    development.append("console/templates/console/_mark.html", "an edited mark")
    assert development.shows("an edited mark", at="/sign-in")

    development.append("console/urls.py", _NEW_VIEW)
    wait_until(
        lambda: development.shows("a new view", at="/new-view"), timeout_s=_RESTART_TIMEOUT_S
    )

    assert development.postgres_pid == postgres_pid


def test_a_syntax_error_is_shown_and_the_next_save_restarts_the_gateway(
    development: Development,
) -> None:
    before = development.append("inference/consumers/http/http_consumer.py", "def broken(:\n")
    wait_until(
        lambda: development.has_output("Gateway does not start."), timeout_s=_RESTART_TIMEOUT_S
    )

    (development.scratch.root / "inference/consumers/http/http_consumer.py").write_text(before)

    wait_until(
        lambda: development.has_output("Gateway is ready again"), timeout_s=_RESTART_TIMEOUT_S
    )
    assert development.has_output("SyntaxError")
    # The console does not import the file.
    assert not development.has_output("Console does not start.")
