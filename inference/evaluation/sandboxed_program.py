"""Runs in the sandbox's process: drops the process's rights, then executes an untrusted program.

This file is executed as a script and imports only the standard library. It reads one JSON object
from stdin: `program` (Python code), `folder` (the program's folder), `readable` (other folders),
`token` (written to `result` if the program ends normally), `result` (a file descriptor) and
`limits` (names of RLIMIT constants and their values).

Rules:
1. Landlock allows reading in the `readable` folders, and reading and writing files directly in
   `folder`. The program cannot create folders there, so `folder` is easy to delete.
2. Seccomp refuses the system calls in `_REFUSED_CALLS`. They open sockets, start programs, send
   signals, or change limits, file attributes or kernel objects. New processes are refused, but
   threads are allowed.
3. A program that calls `exit` does not pass, because it has not run to its end. This finds
   mistakes, not deceit: the program shares the process with `token`, so it can write it.
"""

import ctypes
import json
import os
import platform
import resource
import struct
import sys
from typing import Any, Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
# Constants of the kernel's interface (linux/prctl.h, linux/seccomp.h, asm/unistd.h, and
# linux/landlock.h).
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION, _RULE_PATH_BENEATH = 1, 1

# Rights of Landlock on files, as bits (linux/landlock.h).
_READ_FILE, _READ_DIR, _WRITE_FILE = 1 << 2, 1 << 3, 1 << 1
_REMOVE_FILE, _MAKE_REG, _TRUNCATE = 1 << 5, 1 << 8, 1 << 14
MIN_LANDLOCK_VERSION: Final = 3  # earlier versions do not restrict truncation

# Instructions of classic BPF, and then results of the filter (linux/seccomp.h).
_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_EPERM, _ENOSYS = 1, 38
_CLONE_THREAD: Final = 0x10000  # flag of the call clone: make a thread, not a process
_X32: Final = 0x40000000  # the lowest number of a system call in the x32 ABI
# System calls that are refused: their numbers on x86_64 and aarch64; None: the call does not exist.
_REFUSED_CALLS: Final[tuple[tuple[int | None, int | None], ...]] = (
    (41, 198),  # socket
    (425, 425),  # io_uring_setup, which can open sockets
    (57, None),  # fork
    (58, None),  # vfork
    (59, 221),  # execve
    (322, 281),  # execveat
    (101, 117),  # ptrace
    (310, 270),  # process_vm_readv
    (311, 271),  # process_vm_writev
    (62, 129),  # kill
    (200, 130),  # tkill
    (234, 131),  # tgkill
    (129, 138),  # rt_sigqueueinfo
    (297, 240),  # rt_tgsigqueueinfo
    (424, 424),  # pidfd_send_signal
    (438, 438),  # pidfd_getfd
    (302, 261),  # prlimit64
    (160, 164),  # setrlimit
    (141, 140),  # setpriority
    (203, 122),  # sched_setaffinity
    (144, 119),  # sched_setscheduler
    (251, 30),  # ioprio_set
    (90, None),  # chmod
    (91, 52),  # fchmod
    (268, 53),  # fchmodat
    (452, 452),  # fchmodat2
    (92, None),  # chown
    (93, 55),  # fchown
    (94, None),  # lchown
    (260, 54),  # fchownat
    (132, None),  # utime
    (235, None),  # utimes
    (261, None),  # futimesat
    (280, 88),  # utimensat
    (188, 5),  # setxattr
    (189, 6),  # lsetxattr
    (190, 7),  # fsetxattr
    (197, 14),  # removexattr
    (198, 15),  # lremovexattr
    (199, 16),  # fremovexattr
    (29, 194),  # shmget
    (64, 190),  # semget
    (68, 186),  # msgget
    (240, 180),  # mq_open
    (248, 217),  # add_key
    (249, 218),  # request_key
    (250, 219),  # keyctl
    (272, 97),  # unshare
    (308, 268),  # setns
    (165, 40),  # mount
    (321, 280),  # bpf
    (298, 241),  # perf_event_open
    (323, 282),  # userfaultfd
)
# By processor: the column in _REFUSED_CALLS, the architecture for seccomp, and the numbers of the
# system calls clone and capset.
_MACHINES: Final = {"x86_64": (0, 0xC000003E, 56, 126), "aarch64": (1, 0xC00000B7, 220, 91)}


class NoSandbox(Exception):
    """This kernel or processor cannot confine a program."""


def main() -> None:
    instructions = json.load(sys.stdin)
    os.chdir(instructions["folder"])
    for name, value in instructions["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    drop_rights(instructions["folder"], instructions["readable"])
    code = compile(instructions["program"], "program", "exec")
    token, result = instructions["token"], instructions["result"]
    exec(code, {"__name__": "__main__"})  # noqa: S102  # the purpose of the sandbox
    os.write(result, token.encode())


def drop_rights(folder: str, readable: list[str]) -> None:
    """Confine this process for good. Raises NoSandbox."""
    _call(_LIBC.prctl, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _restrict_files(folder, readable)
    _drop_capabilities()
    _restrict_system_calls()


def landlock_version() -> int:
    """Return the version of Landlock; 0 or less: the kernel has no Landlock."""
    version: int = _LIBC.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    return version


def has_system_call_numbers() -> bool:
    """Return whether the numbers of the system calls are known for this processor."""
    return platform.machine() in _MACHINES


def _restrict_files(folder: str, readable: list[str]) -> None:
    version = landlock_version()
    if version < MIN_LANDLOCK_VERSION:
        raise NoSandbox("the kernel has no Landlock, or too old a version")
    # All rights and scopes that this version knows, each as a bit.
    files = (1 << (16 if version >= 5 else 15)) - 1
    net = 0b11 if version >= 4 else 0  # binding and connecting TCP
    scopes = 0b11 if version >= 6 else 0  # abstract sockets, signals
    attributes = struct.pack("=QQQ", files, net, scopes)
    size = {3: 8, 4: 16, 5: 16}.get(version, 24)  # bytes of the fields that this version knows
    ruleset = _call(_LIBC.syscall, _LANDLOCK_CREATE_RULESET, attributes, size, 0)
    own = _READ_FILE | _READ_DIR | _WRITE_FILE | _REMOVE_FILE | _MAKE_REG | _TRUNCATE
    for path, rights in [(folder, own), *((path, _READ_FILE | _READ_DIR) for path in readable)]:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", rights, descriptor)
        _call(_LIBC.syscall, _LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
        os.close(descriptor)
    _call(_LIBC.syscall, _LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _drop_capabilities() -> None:
    """Give up root's capabilities."""
    _, _, _, capset = _machine()
    header = struct.pack("=Ii", 0x20080522, 0)  # version 3, this process
    _call(_LIBC.syscall, capset, header, bytes(24))  # zeros: no capability


def _restrict_system_calls() -> None:
    program = _filter_program()
    instructions = ctypes.create_string_buffer(b"".join(program))
    filter_struct = struct.pack("HxxxxxxP", len(program), ctypes.addressof(instructions))
    _call(_LIBC.prctl, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filter_struct, 0, 0)


def _filter_program() -> list[bytes]:
    """Return the instructions of the filter (classic BPF).

    A load instruction reads a field of `seccomp_data` by its offset: 0 is the number of the system
    call, 4 is the architecture, and 16 is the first argument.
    """
    column, architecture, clone, _ = _machine()
    refused_numbers = [
        number for numbers in _REFUSED_CALLS if (number := numbers[column]) is not None
    ]
    program = [
        _instruction(_LOAD, 4),
        _instruction(_EQUAL, architecture, jump_if_true=1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, 0),
        # The same calls have other numbers in the x32 ABI.
        _instruction(_AT_LEAST, _X32, jump_if_false=1),
        _instruction(_RETURN, _KILL),
        # clone3 (435) is reported as unknown. glibc then uses clone, whose flags the filter can
        # read.
        _instruction(_EQUAL, 435, jump_if_false=1),
        _instruction(_RETURN, _REFUSE | _ENOSYS),
    ]
    for number in refused_numbers:
        program.append(_instruction(_EQUAL, number, jump_if_false=1))
        program.append(_instruction(_RETURN, _REFUSE | _EPERM))
    return [
        *program,
        _instruction(_EQUAL, clone, jump_if_false=3),
        _instruction(_LOAD, 16),
        _instruction(_HAS_BIT, _CLONE_THREAD, jump_if_true=1),
        _instruction(_RETURN, _REFUSE | _EPERM),
        _instruction(_RETURN, _ALLOW),
    ]


def _instruction(
    code: int, operand: int, *, jump_if_true: int = 0, jump_if_false: int = 0
) -> bytes:
    """Return an instruction. The jumps are the number of instructions to skip."""
    return struct.pack("=HBBI", code, jump_if_true, jump_if_false, operand)


def _machine() -> tuple[int, int, int, int]:
    """Return this processor's values in _MACHINES. Raises NoSandbox."""
    try:
        return _MACHINES[platform.machine()]
    except KeyError:
        raise NoSandbox(f"{platform.machine()} processors are not supported") from None


def _call(function: Any, *arguments: Any) -> int:
    """Call a function of libc. Raises NoSandbox if the call fails."""
    result: int = function(*arguments)
    if result < 0:
        raise NoSandbox(os.strerror(ctypes.get_errno()))
    return result


if __name__ == "__main__":
    main()
