"""Emacs in a terminal, with the language server. Tests press keys and evaluate expressions."""

import json
import os
import pty
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.functional.gateway.gateway_stack import wait_until
from tests.stack.language_server import environment_of
from tests.stack.waiting import wait_until as wait_for_condition

EMACS: Final = shutil.which("emacs")
PACKAGES: Final = Path("/usr/share/emacs/site-lisp/elpa")  # where Debian installs packages
TIMEOUT_S: Final = 60.0
CONTROL_RETURN: Final = "\x1b[27;5;13~"  # the terminal's code for C-RET
_COMMAND: Final = " ".join(json.dumps(word) for word in (sys.executable, "-m", "caret_ls"))
# Without Debian's lsp-mode, because the test of lsp-mode loads the sources of its repository.
_LOAD_PACKAGES: Final = f"""\
(dolist (folder (directory-files "{PACKAGES}" t "^[a-z]"))
  (unless (string-match-p "lsp-mode" folder) (add-to-list 'load-path folder)))
(setq server-socket-dir (getenv "HOME") make-backup-files nil project-vc-ignores nil)
"""


@dataclass(frozen=True, slots=True)
class Emacs:
    socket: Path
    terminal: int  # a file descriptor
    environment: dict[str, str]

    def press(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def evaluate(self, expression: str) -> Any:
        """Return the expression's value in the visible buffer: text, a number, a list or None."""
        in_buffer = f"(with-current-buffer (window-buffer) (json-encode {expression}))"
        command = ["emacsclient", "--socket-name", str(self.socket), "--eval", in_buffer]
        output = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True, timeout=120
        ).stdout
        # emacsclient prints the JSON as a Lisp string, which is also a JSON string.
        return json.loads(json.loads(output))

    async def wait_for_value(self, expression: str) -> Any:
        """Wait until the expression has a value other than nil, and return it."""
        values: list[Any] = []

        async def has_value() -> bool:
            with suppress(subprocess.CalledProcessError):
                values[:] = [self.evaluate(expression)]
            return bool(values) and bool(values[0])

        assert await wait_until(has_value, timeout_s=TIMEOUT_S), f"{expression} stays nil"
        return values[0]


@contextmanager
def running_emacs(home: Path, file: Path, init: str, **variables: str) -> Iterator[Emacs]:
    """Run Emacs with a file open. In `init`, COMMAND stands for the language server's command."""
    assert EMACS is not None
    config = home / "init.el"
    init = init.replace("COMMAND", _COMMAND)
    config.write_text(f"{_LOAD_PACKAGES}{init}(server-start)\n")
    environment = environment_of(home, TERM="xterm", **variables)
    terminal, inner = pty.openpty()
    # Emacs reads its controlling terminal.
    command = ["setsid", "--ctty", EMACS, "-Q", "-nw", "-l", str(config), str(file)]
    emacs = Emacs(home / "server", terminal, environment)
    with subprocess.Popen(
        command,
        env=environment,
        cwd=home,
        stdin=inner,
        stdout=inner,
        stderr=inner,
    ) as process:
        os.close(inner)
        screen = threading.Thread(target=_read_screen, args=(terminal,))
        screen.start()
        try:
            wait_for_condition(emacs.socket.exists, timeout_s=TIMEOUT_S)
            yield emacs
        finally:
            process.kill()
            process.wait()
            screen.join()
            os.close(terminal)


def _read_screen(terminal: int) -> None:
    """Read what Emacs draws, so that it does not wait for the terminal."""
    with suppress(OSError):  # the other end is closed
        while os.read(terminal, 65_536):
            pass
