"""Errors of pg_dump, with a shell script that takes its place."""

from pathlib import Path

import pytest

from caret.foundation.postgres import backup
from caret.foundation.postgres.backup import DumpFailed, PostgresServer, dump_data


def write_program(folder: Path, script: str) -> PostgresServer:
    """Write a shell script as pg_dump, and return a server whose backups use it."""
    program = folder / "pg_dump"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return PostgresServer("postgresql://u@127.0.0.1/caret", programs=folder)


def test_a_dump_that_takes_too_long_fails_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = write_program(tmp_path, "exec sleep 60")
    monkeypatch.setattr(backup, "_TIMEOUT_S", 0.1)

    with pytest.raises(DumpFailed, match=r"pg_dump did not end within 0\.1 seconds"):
        dump_data(server, tmp_path / "data")

    assert not (tmp_path / "data").exists()


def test_the_error_of_a_failed_dump_is_the_programs_error_output(tmp_path: Path) -> None:
    server = write_program(tmp_path, "echo 'no such role' >&2; exit 1")

    with pytest.raises(DumpFailed, match=r"^no such role$"):
        dump_data(server, tmp_path / "data")
