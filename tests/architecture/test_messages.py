"""What the console says is in its catalogues, and these are compiled."""

import subprocess
import sys

from caret.embedded.paths import REPOSITORY


def test_the_catalogues_hold_what_is_said_and_are_compiled() -> None:
    script = REPOSITORY / "platform" / "scripts" / "messages"

    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, f"Run platform/scripts/messages.\n{done.stdout}{done.stderr}"
