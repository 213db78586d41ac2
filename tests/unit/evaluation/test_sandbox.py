"""The sandbox for programs that a model has written: each attack fails and leaves no file."""

import platform
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from inference.evaluation.sandbox import SandboxLimits, Verdict, has_sandbox, run_program

pytestmark = pytest.mark.skipif(not has_sandbox(), reason="this machine has no sandbox")

LIMITS = SandboxLimits(time_s=20.0)
# A program passes only if it runs to its end without an error. Most of these programs would do so
# if their attack succeeded. The others end early, claim to have passed, or are wrong.
ATTACKS = {
    "a socket": "import socket; socket.socket()",
    "a local socket": "import socket; socket.socket(socket.AF_UNIX)",
    "a program": "import subprocess; subprocess.run(['/bin/true'], check=True)",
    "a shell": "import os; assert os.system('true') == 0",
    "a process": "import os; os.fork()",
    "another process's memory": "import os; open(f'/proc/{os.getppid()}/environ').read()",
    "a signal": "import os; os.kill(os.getppid(), 0)",
    "a password file": "open('/etc/passwd').read()",
    "a folder": "import os; os.listdir('/')",
    "a file in another folder": "open('/tmp/caret-escaped', 'w').write('x')",
    "a folder of its own": "import os; os.mkdir('deep')",
    "a link": "import os; os.symlink('/etc/passwd', 'link')",
    "the permissions of a file": "import os; os.chmod('/tmp', 0o777)",
    "the time of a file": "import os; os.utime('/tmp')",
    "its own limits": "import resource; resource.setrlimit(resource.RLIMIT_CPU, (999, 999))",
    "memory": "x = bytearray(2 * 1024 ** 3)",
    "a large file": "open('large', 'wb').write(bytes(64 * 1024 ** 2))",
    "an exit without an error": "import os; os._exit(0)",
    "an exit by SystemExit": "raise SystemExit(0)",
    "a wrong result": "assert 1 + 1 == 3",
    "text that is not Python": "def (",
    "a forged result": "import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'0' * 32)\n"
    "  except OSError: pass\nos._exit(0)",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_fail(name: str) -> None:
    assert run_program(ATTACKS[name], LIMITS) is Verdict.FAILED
    # The attack "a file in another folder" tries to create this file.
    assert not Path("/tmp/caret-escaped").exists()  # noqa: S108  # nothing is created here


def test_a_processor_without_a_system_call_filter_has_no_sandbox(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")

    assert not has_sandbox()


def test_an_endless_program_is_stopped() -> None:
    assert run_program("while True: pass", replace(LIMITS, time_s=1.0)) is Verdict.TIMED_OUT


def test_a_program_that_fills_the_disk_is_stopped_and_its_files_are_deleted() -> None:
    program = "for n in range(10**6):\n  open(str(n), 'wb').write(bytes(2 ** 20))"
    temporary_folder = Path(tempfile.gettempdir())
    folders_before = set(temporary_folder.glob("caret-evaluation-*"))

    verdict = run_program(program, replace(LIMITS, disk_mb=4))

    assert verdict is Verdict.DISK_EXCEEDED
    assert set(temporary_folder.glob("caret-evaluation-*")) <= folders_before


def test_a_program_may_delete_its_files_while_they_are_measured() -> None:
    program = (
        "import os, time\n"
        "until = time.monotonic() + 1.5\n"
        "while time.monotonic() < until:\n"
        "  for n in range(3000): open(str(n), 'w').close()\n"
        "  for n in range(3000): os.remove(str(n))\n"
    )

    assert run_program(program, LIMITS) is Verdict.PASSED


def test_an_ordinary_program_passes() -> None:
    program = (
        "import json, math, re, threading, dataclasses\n"
        "thread = threading.Thread(target=lambda: None); thread.start(); thread.join()\n"
        "open('note', 'w').write('x'); assert open('note').read() == 'x'\n"
        "assert math.floor(1.5) == json.loads('1')\n"
    )

    assert run_program(program, LIMITS) is Verdict.PASSED
