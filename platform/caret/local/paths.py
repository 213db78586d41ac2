"""The paths of the local installation within CARET_HOME."""

import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from caret.foundation.home_dir import REPOSITORY as REPOSITORY
from caret.foundation.home_dir import find_home_folder
from caret.local.errors import StartupError


def home_from_environment() -> "EmbeddedPaths":
    return EmbeddedPaths(find_home_folder())


@dataclass(frozen=True, slots=True)
class EmbeddedPaths:
    home: Path  # mode 0700

    @property
    def secrets(self) -> Path:
        return self.home / "secrets"  # mode 0700, files 0600

    @property
    def root_secret(self) -> Path:
        return self.secrets / "root"  # 64 hex digits

    @property
    def app_database_url(self) -> Path:
        return self.secrets / "database-url"  # role caret_app

    @property
    def owner_database_url(self) -> Path:
        return self.secrets / "owner-database-url"  # role caret_owner

    @property
    def redis_url(self) -> Path:
        return self.secrets / "redis-url"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def pools(self) -> Path:
        return self.home / "pools.toml"  # the data plane's pools file

    @property
    def journal(self) -> Path:
        return self.home / "journal"  # usage records that are not yet in Redis

    @property
    def up_file(self) -> Path:
        return self.home / "up.json"  # the running installation, mode 0600

    @property
    def sockets(self) -> Path:
        """Directory of the Unix sockets.

        It is in TMPDIR, because the path of a Unix socket has at most 107 bytes.
        """
        digest = hashlib.sha256(str(self.home.resolve()).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"caret-{os.getuid()}-{digest}"


def make_folders(paths: EmbeddedPaths) -> None:
    for folder in (paths.home, paths.secrets, paths.logs, paths.journal):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    _make_socket_folder(paths.sockets)


def _make_socket_folder(folder: Path) -> None:
    """Create the socket directory; reject one that another user created in the shared TMPDIR."""
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise StartupError(
            f"{folder} does not belong to you. Remove it, or set TMPDIR to another folder."
        )
    folder.chmod(0o700)
