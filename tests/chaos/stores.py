"""Postgres and Valkey, which listen on the network of their host, each with its own small disk.

The disks are in memory (tmpfs), so that filling them affects nothing else. The run itself connects
by Unix sockets, which no network fault affects.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from caret.local.databases.credentials import (
    APP_ROLE,
    DATABASE,
    OWNER_ROLE,
    SUPERUSER,
    read_password,
    write_credentials,
)
from caret.local.databases.postgres import EmbeddedPostgres
from caret.local.databases.postgres_cluster import find_postgres_programs, postgres_environment
from caret.local.databases.postgres_roles import accepts_connections
from caret.local.databases.postgres_user import choose_user
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.paths import EmbeddedPaths
from tests.benchmarks.installation import Home
from tests.chaos.hosts import Host

POSTGRES_PORT: Final = 5432
VALKEY_PORT: Final = 6379
_NETWORK: Final = "10.77.0.0/24"
_DISK_MB: Final = 512
# So that libpq itself detects that a host is gone, and which of the two is the primary.
# connect_timeout is in seconds, tcp_user_timeout in milliseconds.
_OPTIONS: Final = "target_session_attrs=read-write&connect_timeout=2&tcp_user_timeout=5000"


@dataclass(frozen=True, slots=True)
class Disks:
    """The folders of the stores, each on its own disk."""

    postgres: EmbeddedPaths
    standby: EmbeddedPaths
    valkey: EmbeddedPaths
    far_valkey: EmbeddedPaths  # of another region


@contextmanager
def small_disks(home: Home) -> Iterator[Disks]:
    with ExitStack() as stack:
        folders = [
            stack.enter_context(_small_disk(home.paths.home / name))
            for name in ("postgres-disk", "standby-disk", "valkey-disk", "far-valkey-disk")
        ]
        # In the order of the fields of Disks.
        disks = Disks(*(EmbeddedPaths(folder / "home") for folder in folders))
        for paths in (disks.postgres, disks.standby, disks.valkey, disks.far_valkey):
            stack.callback(shutil.rmtree, paths.sockets, ignore_errors=True)
        yield disks


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    options = ("-t", "tmpfs", "-o", f"size={_DISK_MB}m,mode=0700", "tmpfs", str(folder))
    subprocess.run(("mount", *options), check=True)
    try:
        yield folder
    finally:
        subprocess.run(("umount", "--lazy", str(folder)), check=True)


class Standby(EmbeddedPostgres):
    """A Postgres that follows the primary, and gets its database roles from it."""

    name = "Postgres (standby)"

    def is_ready(self) -> bool:
        return accepts_connections(self._paths)


def postgres_on(
    host: Host, paths: EmbeddedPaths, *, environment: dict[str, str]
) -> EmbeddedPostgres:
    """Return a Postgres that listens on this host. Its processes have this environment."""
    settings = _server_settings(host, paths)
    return EmbeddedPostgres(paths, tag_environment=environment, settings=settings)


def standby_on(host: Host, paths: EmbeddedPaths, *, environment: dict[str, str]) -> Standby:
    return Standby(paths, tag_environment=environment, settings=_server_settings(host, paths))


def valkey_on(host: Host, paths: EmbeddedPaths, *, environment: dict[str, str]) -> EmbeddedValkey:
    settings = {"bind": host.address, "port": str(VALKEY_PORT)}
    return EmbeddedValkey(paths, tag_environment=environment, settings=settings)


def copy_to_standby(primary: Host, disks: Disks) -> None:
    """Copy the primary's data for a standby. Call this on the standby's host."""
    shutil.copytree(disks.postgres.secrets, disks.standby.secrets, dirs_exist_ok=True)
    write_credentials(disks.standby)
    data = disks.standby.home / "postgres"
    shutil.rmtree(data, ignore_errors=True)
    address = (
        f"host={primary.address} port={POSTGRES_PORT} user={SUPERUSER}"
        f" password={read_password(disks.postgres, SUPERUSER)}"
    )
    command = (
        *(str(find_postgres_programs(disks.postgres) / "pg_basebackup"), "--pgdata", str(data)),
        *("--dbname", address, "--write-recovery-conf", "--wal-method", "stream"),
        *("--checkpoint", "fast"),
    )
    subprocess.run(command, check=True, capture_output=True, env=postgres_environment())
    choose_user().take_ownership(data)


def connect_as_superuser(paths: EmbeddedPaths) -> psycopg.Connection:
    """Connect by the Unix socket, in autocommit mode.

    Raises OperationalError.
    """
    return psycopg.connect(
        host=str(paths.sockets),
        port=POSTGRES_PORT,
        dbname="postgres",
        user=SUPERUSER,
        password=read_password(paths, SUPERUSER),
        autocommit=True,
    )


def database_url(role: str, paths: EmbeddedPaths, *hosts: Host) -> str:
    addresses = ",".join(f"{host.address}:{POSTGRES_PORT}" for host in hosts)
    return f"postgresql://{role}:{read_password(paths, role)}@{addresses}/{DATABASE}?{_OPTIONS}"


def redis_url(paths: EmbeddedPaths, host: Host) -> str:
    return f"redis://:{read_password(paths, 'valkey')}@{host.address}:{VALKEY_PORT}/0"


def application_urls(disks: Disks, *, stores: Host, standby: Host) -> dict[str, str]:
    """Return the URLs as settings of Caret's processes."""
    hosts = (stores, standby)
    return {
        "DATABASE_URL": database_url(APP_ROLE, disks.postgres, *hosts),
        "CARET_OWNER_DATABASE_URL": database_url(OWNER_ROLE, disks.postgres, *hosts),
        "REDIS_URL": redis_url(disks.valkey, stores),
    }


def _server_settings(host: Host, paths: EmbeddedPaths) -> dict[str, str]:
    """Write the access rules of a Postgres on this host, and return its settings."""
    rules = paths.secrets / "pg_hba.conf"
    rules.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = (
        "local all all scram-sha-256",
        f"host all all {_NETWORK} scram-sha-256",
        f"host replication all {_NETWORK} scram-sha-256",
    )
    rules.write_text("".join(f"{line}\n" for line in lines))
    return {
        "listen_addresses": host.address,
        "port": str(POSTGRES_PORT),
        "hba_file": str(rules),
        "max_wal_size": "128MB",  # the disk is small
        "min_wal_size": "32MB",
    }
