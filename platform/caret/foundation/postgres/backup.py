"""Database backups in two files: all data, and the keys that decrypt it.

pg_dump and pg_restore run as a role that row-level security does not bind: it makes the dump of any
other role fail. Passwords are passed in the environment, because arguments are visible to all users
of a machine.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

KEY_TABLES: Final = "keyring_*"
# Equal for all connections to the same database, whatever the address.
WHICH_DATABASE: Final = "SELECT pg_postmaster_start_time(), current_database()"
# A backup must not allow anybody to use a signed-in session.
_NOT_KEPT: Final = ("django_session",)
_TIMEOUT_S: Final = 6 * 3600


class DumpFailed(Exception):
    """A dump or a restore failed. The text is the program's own."""


@dataclass(frozen=True, slots=True)
class PostgresServer:
    address: str  # postgresql://...
    programs: Path | None  # the directory of pg_dump and pg_restore; None: on the PATH


def dump_data(server: PostgresServer, to: Path) -> None:
    """Dump schema, policies and grants of all tables, and the data of all but the key tables.

    Raises DumpFailed.
    """
    left_out = [f"--exclude-table-data={name}" for name in (KEY_TABLES, *_NOT_KEPT)]
    _run_dump(server, to, left_out)


def dump_keys(server: PostgresServer, to: Path) -> None:
    """Dump the data of the key tables.

    Run it after the data dump, so that it contains all the keys that the data needs.
    Raises DumpFailed.
    """
    _run_dump(server, to, ["--data-only", f"--table={KEY_TABLES}"])


def restore(server: PostgresServer, file: Path) -> None:
    """Restore a dump completely or not at all.

    Raises DumpFailed.
    """
    _run_program(server, "pg_restore", ["--single-transaction", "--exit-on-error", str(file)])


def is_empty(server: PostgresServer) -> bool:
    """Return whether the database has no table."""
    with psycopg.connect(server.address) as connection:
        row = connection.execute(
            "SELECT NOT EXISTS (SELECT FROM pg_class WHERE relkind IN ('r', 'p')"
            " AND relnamespace = 'public'::regnamespace)"
        ).fetchone()
    return row == (True,)


def identify_database(server: PostgresServer) -> object:
    """Return the database's identity (see WHICH_DATABASE)."""
    with psycopg.connect(server.address) as connection:
        return connection.execute(WHICH_DATABASE).fetchone()


def _run_dump(server: PostgresServer, to: Path, arguments: list[str]) -> None:
    # Created first with access for its owner only: pg_dump would use the umask.
    os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        _run_program(server, "pg_dump", ["--format=custom", f"--file={to}", *arguments])
    except BaseException:
        to.unlink()  # half a backup looks like a whole one
        raise


def _run_program(server: PostgresServer, program: str, arguments: list[str]) -> None:
    parts = {name: str(value) for name, value in conninfo_to_dict(server.address).items()}
    password = parts.pop("password", "")
    name = program if server.programs is None else str(server.programs / program)
    process = subprocess.run(
        [name, f"--dbname={make_conninfo(**parts)}", "--no-password", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PGPASSWORD": password, "LC_ALL": "C"},
        timeout=_TIMEOUT_S,
        check=False,
    )
    if process.returncode != 0:
        raise DumpFailed(process.stderr.strip())
