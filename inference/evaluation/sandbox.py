"""Runs untrusted programs, each in a process of its own with limits, and reports whether they pass.

A program cannot use the network or start processes, and its memory, time and disk space are
limited. It can write files in a temporary folder. Besides that folder, it can read only the
standard library and the system's libraries. `sandboxed_program.py` drops the program's rights.
"""

import json
import os
import secrets
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from inference.evaluation import sandboxed_program
from inference.evaluation.task import Task

_MB: Final = 1024 * 1024
_CHECK_INTERVAL_S: Final = 0.05
_SYSTEM_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    DISK_EXCEEDED = "disk_exceeded"


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    time_s: float = 10.0  # until the program must have ended
    memory_mb: int = 512  # of address space
    disk_mb: int = 16  # of all files together
    file_mb: int = 4  # of each file


def has_sandbox() -> bool:
    """Return whether this kernel and processor can confine a program."""
    return (
        sys.platform == "linux"
        and sandboxed_program.has_system_call_numbers()
        and sandboxed_program.landlock_version() >= sandboxed_program.MIN_LANDLOCK_VERSION
    )


def program_of(task: Task, text: str) -> str:
    """Return one Python program: the task's code, completed with `text`, and then its test."""
    assert task.unit_test is not None, "the task has no test"
    test = task.unit_test
    return f"{task.prefix}{text}{task.suffix}\n{test.program}\ncheck({test.entry_point})\n"


def run_program(program: str, limits: SandboxLimits) -> Verdict:
    """Run Python code, and return PASSED if it runs to its end without an exception.

    The program's files are deleted afterwards.
    """
    token = secrets.token_hex(16)
    with (
        tempfile.TemporaryDirectory(prefix="caret-evaluation-") as folder,
        _pipe() as (read_end, write_end),
    ):
        instructions = {
            "program": program,
            "folder": folder,
            "readable": _readable_folders(),
            "token": token,
            "result": write_end,
            "limits": _rlimits(limits),
        }
        # Isolated (-I), without installed packages (-S), and without writing .pyc files (-B).
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", sandboxed_program.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(write_end,),
            env={},
            cwd=folder,
            start_new_session=True,
        )
        try:
            _send(process, json.dumps(instructions).encode())
            early_verdict = _watch(process, Path(folder), limits)
        finally:
            process.kill()
            process.wait()
        if early_verdict is not None:
            return early_verdict
        # This process still holds the write end, so reading an empty pipe would block.
        os.set_blocking(read_end, False)
        # The token is in the pipe if the program ran to its end (see `sandboxed_program`).
        return Verdict.PASSED if _read_pipe(read_end) == token.encode() else Verdict.FAILED


def _send(process: subprocess.Popen[bytes], instructions: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(instructions)
        process.stdin.close()
    except BrokenPipeError:  # the process ended before it had read the instructions
        return


def _watch(process: subprocess.Popen[bytes], folder: Path, limits: SandboxLimits) -> Verdict | None:
    """Wait until the program ends or exceeds a limit.

    Return TIMED_OUT or DISK_EXCEEDED if the program must be stopped, and None if it has ended.
    """
    until_s = time.monotonic() + limits.time_s
    while True:
        try:
            process.wait(timeout=_CHECK_INTERVAL_S)
        except subprocess.TimeoutExpired:
            if time.monotonic() > until_s:
                return Verdict.TIMED_OUT
        else:
            return None
        if _folder_bytes(folder) > limits.disk_mb * _MB:
            return Verdict.DISK_EXCEEDED


def _folder_bytes(folder: Path) -> int:
    """Return the size of the folder's files. A program cannot create folders in it."""
    with os.scandir(folder) as entries:
        return sum(map(_file_bytes, entries))


def _file_bytes(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512  # the unit of st_blocks
    except FileNotFoundError:  # the program has just deleted it
        return 0


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    read_end, write_end = os.pipe()
    try:
        yield read_end, write_end
    finally:
        os.close(read_end)
        os.close(write_end)


def _read_pipe(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1024)
    except BlockingIOError:
        return b""


def _readable_folders() -> list[str]:
    library = os.path.realpath(sysconfig.get_path("stdlib"))
    return [library, *(folder for folder in _SYSTEM_LIBRARIES if Path(folder).is_dir())]


def _rlimits(limits: SandboxLimits) -> dict[str, int]:
    return {
        "RLIMIT_AS": limits.memory_mb * _MB,
        "RLIMIT_CPU": int(limits.time_s) + 1,  # seconds of all threads together
        "RLIMIT_FSIZE": limits.file_mb * _MB,
        "RLIMIT_NOFILE": 64,
        "RLIMIT_CORE": 0,
    }
