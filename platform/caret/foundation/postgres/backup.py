"""Database backups in two files: the data, and the encryption keys that decrypt it.

pg_dump and pg_restore need a role that row-level security does not bind; a dump by any other role
fails. Passwords are passed in the environment, because arguments are visible to all users of a
machine.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

KEY_TABLES: Final = "keyring_*"  # tables of encryption keys
# Two connections lead to the same database if this query returns the same row for both.
WHICH_DATABASE: Final = "SELECT pg_postmaster_start_time(), current_database()"
# Nobody must be able to use a signed-in session from a backup.
_EXCLUDED_TABLES: Final = ("django_session",)
_TIMEOUT_S: Final = 6 * 3600


class DumpFailed(Exception):
    """A dump or a restore failed, or took too long.

    The text is the error output of pg_dump or pg_restore, or names the time limit.
    """


@dataclass(frozen=True, slots=True)
class PostgresServer:
    address: str  # connection URL: postgresql://...
    programs: Path | None  # the directory of pg_dump and pg_restore; None: on the PATH


def dump_data(server: PostgresServer, file: Path) -> None:
    """Dump schema, policies and grants of all tables, and the data of most tables.

    The data of the key tables and of signed-in sessions is not dumped. Raises DumpFailed, and
    OSError if the file exists or cannot be written.
    """
    exclusions = [f"--exclude-table-data={name}" for name in (KEY_TABLES, *_EXCLUDED_TABLES)]
    _run_dump(server, file, exclusions)


def dump_keys(server: PostgresServer, file: Path) -> None:
    """Dump the data of the key tables.

    Call this after `dump_data`, so that the file contains all encryption keys that the data needs.
    Raises DumpFailed, OSError.
    """
    _run_dump(server, file, ["--data-only", f"--table={KEY_TABLES}"])


def restore(server: PostgresServer, file: Path) -> None:
    """Restore a dump completely or not at all.

    Raises DumpFailed.
    """
    _run_program(server, "pg_restore", ["--single-transaction", "--exit-on-error", str(file)])


def is_empty(server: PostgresServer) -> bool:
    """Return whether the database has no tables in the schema `public`."""
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


def _run_dump(server: PostgresServer, file: Path, arguments: list[str]) -> None:
    # The file is created here, with access for its owner only: pg_dump would use the umask.
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        _run_program(server, "pg_dump", ["--format=custom", f"--file={file}", *arguments])
    except BaseException:
        file.unlink()  # an incomplete backup could be taken for a complete one
        raise


def _run_program(server: PostgresServer, program: str, arguments: list[str]) -> None:
    parts = {name: str(value) for name, value in conninfo_to_dict(server.address).items()}
    password = parts.pop("password", "")
    name = program if server.programs is None else str(server.programs / program)
    try:
        process = subprocess.run(
            [name, f"--dbname={make_conninfo(**parts)}", "--no-password", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, "PGPASSWORD": password, "LC_ALL": "C"},
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DumpFailed(f"{program} did not end within {_TIMEOUT_S} seconds.") from None
    if process.returncode != 0:
        raise DumpFailed(process.stderr.strip())
