"""The local installation's Postgres server, which listens only on a Unix socket.

    with EmbeddedPostgres(paths):
        ...  # the server runs

The files `paths.app_database_url` and `paths.owner_database_url` contain its URLs.
"""

import signal
from collections.abc import Mapping

from caret.local.databases.credentials import write_credentials
from caret.local.databases.postgres_cluster import (
    PostgresCluster,
    ensure_cluster,
    postgres_environment,
)
from caret.local.databases.postgres_roles import accepts_connections, reconcile_roles
from caret.local.databases.postgres_user import PostgresUser, choose_user
from caret.local.paths import EmbeddedPaths
from caret.local.processes.child_process import ChildProcess, ChildSpec
from caret.local.processes.service import LaunchedService

# After a crash, the server first replays its write-ahead log: 2 to 5 s under load.
_READY_TIMEOUT_S = 120.0
_STOP_GRACE_S = 20.0


class EmbeddedPostgres(LaunchedService):
    name = "Postgres"
    ready_timeout_s = _READY_TIMEOUT_S

    def __init__(
        self,
        paths: EmbeddedPaths,
        *,
        tag_environment: dict[str, str] | None = None,
        user: PostgresUser | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`settings` are settings of the server that extend and override ours.

        `tag_environment` contains variables for the server's environment. With them,
        caret.local.processes.process_tag finds and ends a server that outlives its supervisor.
        `user` is the system user that the server runs as; None: it is chosen at the launch.
        """
        self._settings = settings or {}
        self._paths = paths
        self._tag_environment = tag_environment or {}
        self._user = user

    def launch(self) -> None:
        """Start the server. If there is no data directory yet, create it, which takes seconds."""
        write_credentials(self._paths)
        user = self._user or choose_user()
        cluster = ensure_cluster(self._paths, user=user)
        self._child = ChildProcess(self._child_spec(cluster, user=user))
        self._child.start()

    def is_ready(self) -> bool:
        """Return whether the server accepts connections; if it does, reconcile its roles first."""
        if not accepts_connections(self._paths):
            return False
        reconcile_roles(self._paths)
        return True

    def _child_spec(self, cluster: PostgresCluster, *, user: PostgresUser) -> ChildSpec:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._paths.sockets),
            "unix_socket_permissions": "0700",
            "password_encryption": "scram-sha-256",
            "timezone": "UTC",
            "log_timezone": "UTC",
            # Log errors without statements and details, which contain customers' data.
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
            "shared_buffers": "64MB",
            "max_connections": "100",
        } | dict(self._settings)
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = (str(cluster.programs / "postgres"), "-D", str(cluster.data), *options)
        return ChildSpec(
            name=self.name,
            command=user.wrap(command),
            log_file=self._paths.logs / "postgres.log",
            environment=postgres_environment() | self._tag_environment,
            # At SIGINT, Postgres rolls back transactions and does not wait for clients.
            stop_signal=signal.SIGINT,
            stop_grace_s=_STOP_GRACE_S,
        )
