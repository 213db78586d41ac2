"""Backups of the database in two files: all data, and the keys that open what is sealed in it.

By pg_dump and pg_restore, as a role that row security does not bind: as any other, a dump would be
refused. Passwords go by the environment, never by arguments, which all of a machine can read.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

KEY_TABLES: Final = "keyring_*"
# The same for all who are connected to one database, whichever way they came to it.
WHICH_DATABASE: Final = "SELECT pg_postmaster_start_time(), current_database()"
# Who has a backup shall not be signed in as anybody.
_NOT_KEPT: Final = ("django_session",)
_TIMEOUT_S: Final = 6 * 3600


class DumpFailed(Exception):
    """The text is the program's own."""


@dataclass(frozen=True, slots=True)
class Server:
    address: str  # postgresql://...
    programs: Path | None  # the folder of pg_dump and pg_restore; None: on the PATH


def dump_data(server: Server, to: Path) -> None:
    """Tables, policies and grants of all, and what is in all tables but the keys'. Raises
    DumpFailed."""
    left_out = [f"--exclude-table-data={name}" for name in (KEY_TABLES, *_NOT_KEPT)]
    _dump(server, to, left_out)


def dump_keys(server: Server, to: Path) -> None:
    """What is in the keys' tables. Made after the data, so that it opens all of it. Raises
    DumpFailed."""
    _dump(server, to, ["--data-only", f"--table={KEY_TABLES}"])


def restore(server: Server, file: Path) -> None:
    """All of it or nothing. Raises DumpFailed."""
    _run(server, "pg_restore", ["--single-transaction", "--exit-on-error", str(file)])


def is_empty(server: Server) -> bool:
    """Whether the database has no table."""
    with psycopg.connect(server.address) as connection:
        row = connection.execute(
            "SELECT NOT EXISTS (SELECT FROM pg_class WHERE relkind IN ('r', 'p')"
            " AND relnamespace = 'public'::regnamespace)"
        ).fetchone()
    return row == (True,)


def which_database(server: Server) -> object:
    """What WHICH_DATABASE says there."""
    with psycopg.connect(server.address) as connection:
        return connection.execute(WHICH_DATABASE).fetchone()


def _dump(server: Server, to: Path, arguments: list[str]) -> None:
    # Made first, for its owner alone: pg_dump would make it as the umask says.
    os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        _run(server, "pg_dump", ["--format=custom", f"--file={to}", *arguments])
    except BaseException:
        to.unlink()  # half a backup looks like one
        raise


def _run(server: Server, program: str, arguments: list[str]) -> None:
    parts = {name: str(value) for name, value in conninfo_to_dict(server.address).items()}
    password = parts.pop("password", "")
    name = program if server.programs is None else str(server.programs / program)
    done = subprocess.run(
        [name, f"--dbname={make_conninfo(**parts)}", "--no-password", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PGPASSWORD": password, "LC_ALL": "C"},
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise DumpFailed(done.stderr.strip())
