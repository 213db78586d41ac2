"""The directories of a local installation, accessible only to their owner."""

import os
import stat
from pathlib import Path

from caret.local.errors import StartupError
from caret.local.paths import EmbeddedPaths


def make_folders(paths: EmbeddedPaths) -> None:
    for folder in (paths.home, paths.secrets, paths.logs, paths.journal):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    _make_socket_folder(paths.sockets)


def _make_socket_folder(folder: Path) -> None:
    """Create the socket directory; reject one that another user created in the shared TMPDIR."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise StartupError(
            f"{folder} is not a folder of yours; remove it, or set TMPDIR to another folder."
        )
    folder.chmod(0o700)
