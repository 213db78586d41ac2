"""`manage.py up [--detach]`: prepares and starts all of Caret, and tests it with a completion."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from caret.foundation.environment import env_text
from caret.local.caret_services import manage_command
from caret.local.engines.engine_plan import require_hardware
from caret.local.errors import ExitCode, NoDiskSpace, StartupError
from caret.local.installation import Installation, list_step_titles
from caret.local.paths import REPOSITORY, EmbeddedPaths, home_from_environment, make_folders
from caret.local.processes.log_rotation import rotate_at_start
from caret.local.processes.pid_lock import HomeLock, read_supervisor_pid
from caret.local.processes.signals import ShutdownRequested, raise_on_stop_signals
from caret.local.progress import PlainProgress, StepList, choose_progress
from caret.local.state_file import RunningInstallation, read_up_file
from caret.local.up_settings import UpSettings, settings_from_environment

# A new Postgres takes 40 MB; its write-ahead log and the services' logs grow under load.
MIN_FREE_BYTES = 500 * 1024 * 1024
_READY_OPTION = "--ready-descriptor"
_READY = b"1"


def require_room(folder: Path, *, min_free_bytes: int = MIN_FREE_BYTES) -> None:
    """Check the free space on the disk of `folder`.

    Raises NoDiskSpace.
    """
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < min_free_bytes:
        raise NoDiskSpace(
            f"The disk with {folder} has {free_bytes // 2**20} MB free; Caret needs"
            f" {min_free_bytes // 2**20} MB. Free some space, or set CARET_HOME to another disk."
        )


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code.

    Raises StartupError, BadSetting.
    """
    options = _parse_options(arguments)
    paths = home_from_environment()
    # This check comes first. `settings_from_environment` requires free memory, which a running
    # installation uses.
    if read_supervisor_pid(paths) is not None:
        return _report_running(paths)
    settings = settings_from_environment()
    make_folders(settings.paths)
    require_room(settings.paths.home)
    if settings.own_pools is None:
        require_hardware(settings.machine, env_text("CARET_ENGINE", ""))
    if options.detach:
        return _run_detached()
    return _run_installation(settings, ready_descriptor=options.ready_descriptor)


def _parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="manage.py up", description=__doc__)
    parser.add_argument("--detach", action="store_true", help="return when everything is ready")
    parser.add_argument(_READY_OPTION, type=int, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _run_installation(settings: UpSettings, *, ready_descriptor: int | None) -> int:
    progress = choose_progress(StepList(list_step_titles(settings)))
    installation = Installation(settings, progress=progress)
    with raise_on_stop_signals():
        try:
            with HomeLock(settings.paths), installation:
                _start_services(installation, settings=settings)
                if ready_descriptor is None:
                    installation.progress.print_line("  Ctrl-C stops everything.")
                else:
                    _detach_from_terminal(settings.paths, ready_descriptor=ready_descriptor)
                    installation.progress = PlainProgress(StepList(list_step_titles(settings)))
                installation.supervise()
        except ShutdownRequested:
            installation.progress.print_line("  Stopped.")
    return ExitCode.OK


def _start_services(installation: Installation, *, settings: UpSettings) -> None:
    began_s = time.monotonic()
    print_line = installation.progress.print_line
    print_line("")
    print_line(f"  Caret starts in {settings.paths.home}")
    if settings.own_pools is None:
        print_line(f"  {settings.engine_plan.sentence}")
    if settings.kv_tier is not None:
        print_line(f"  {settings.kv_tier.sentence}")
    for sentence in _describe_own_services(settings):
        print_line(f"  {sentence}")
    print_line("")
    installation.start()
    print_line("")
    print_line(f"  Caret is ready, after {time.monotonic() - began_s:.1f} s.")
    print_summary(installation.describe(), print_line=print_line)
    stream_smoke_test(environment=installation.environment, print_line=print_line)


def _describe_own_services(settings: UpSettings) -> list[str]:
    """Return sentences about the services that settings name, and that are not started here."""
    sentences = {
        "Postgres is your own (DATABASE_URL).": settings.has_own_postgres,
        "Redis is your own (REDIS_URL).": settings.has_own_redis,
        "The engines are your own (CARET_POOLS_FILE).": settings.own_pools is not None,
        "The embedding engine is your own (CARET_EMBEDDINGS_URL).": settings.has_retrieval
        and settings.embeddings is None,
    }
    return [sentence for sentence, is_own in sentences.items() if is_own]


def _report_running(paths: EmbeddedPaths) -> int:
    entry = read_up_file(paths.up_file)
    if entry is None:
        raise StartupError(
            f"Another `up` is starting or stopping in {paths.home}; see its output for details."
        )
    _write("Caret runs already. `make down` stops it.")
    print_summary(entry, print_line=_write)
    return ExitCode.OK


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")


def print_summary(entry: RunningInstallation, *, print_line: Callable[[str], None]) -> None:
    tenant = entry["tenants"][0]
    print_line("")
    print_line(f"  Console   {entry['console_url']}")
    print_line(f"            {tenant['owner_email']}  {tenant['owner_password']}  (owner)")
    print_line(f"            {tenant['admin_email']}  {tenant['admin_password']}  (administrator)")
    if (operator := entry["operator"]) is not None:
        print_line(f"  Operators {operator['url']}")
        print_line(f"            {operator['handle']}  {operator['password']}")
        print_line(f"            second factor: {operator['totp_uri']}")
    print_line(f"  Gateway   {entry['gateway_url']}")
    print_line(f"            API key of {tenant['slug']}: {tenant['api_key']}")
    for pool in entry["pools"]:
        print_line(f"  Pool      {pool['name']} ({pool['tier']}): {pool['url']}")
    print_line("")


# A file with an unfinished line, for which a completion is requested.
EXAMPLE = REPOSITORY / "platform" / "examples" / "readings.py"
# The cursor is after the first occurrence of this text, at the end of the unfinished line.
BEFORE_CURSOR = "with open(self.path, "
_TIMEOUT_S = 60.0  # for this completion


def find_cursor(text: str, *, before_cursor: str) -> tuple[int, int]:
    """Return line and column of the cursor, both from 1."""
    before = text[: text.index(before_cursor) + len(before_cursor)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def stream_smoke_test(*, environment: Mapping[str, str], print_line: Callable[[str], None]) -> None:
    """Request and print a completion. Print a failure, too: the installation keeps running."""
    line, column = find_cursor(EXAMPLE.read_text(), before_cursor=BEFORE_CURSOR)
    name = str(EXAMPLE.relative_to(REPOSITORY))
    print_line(f"  A completion of {name}, line {line}, column {column}:")
    print_line("")
    command = manage_command("complete", name, "--line", str(line), "--column", str(column))
    try:
        finished = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            env=dict(environment),
            cwd=REPOSITORY,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print_line(f"  The completion was not finished after {_TIMEOUT_S:.0f} s.")
        return
    if finished.returncode != 0:
        print_line(f"  The completion failed with status {finished.returncode}.")
    print_line("")


def _run_detached() -> int:
    """Run the supervisor in its own session, wait until it is ready, and return the exit code.

    The supervisor keeps the terminal until then, so the output is the same as without --detach. It
    reports readiness with one byte through a pipe. If the pipe ends without that byte, the
    supervisor has ended, and this function returns its exit code.
    """
    reading, writing = os.pipe()
    with subprocess.Popen(
        manage_command("up", _READY_OPTION, str(writing)),
        pass_fds=[writing],
        start_new_session=True,
    ) as supervisor:
        os.close(writing)
        _forward_stop_signals(supervisor)
        is_ready = os.read(reading, 1) == _READY
        os.close(reading)
        if is_ready:
            # Otherwise the end of the `with` block would wait until the supervisor ends.
            supervisor.returncode = 0
            return 0
        return supervisor.wait()


def _detach_from_terminal(paths: EmbeddedPaths, *, ready_descriptor: int) -> None:
    """Redirect input and output away from the terminal, then report readiness.

    Output goes to the supervisor's log. The process that started the supervisor waits for the
    report.
    """
    log_file = paths.logs / "supervisor.log"
    rotate_at_start(log_file)
    sys.stdout.flush()
    sys.stderr.flush()
    with log_file.open("ab") as log, Path(os.devnull).open("rb") as null_device:
        os.dup2(null_device.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.write(ready_descriptor, _READY)
    os.close(ready_descriptor)


def _forward_stop_signals(supervisor: subprocess.Popen[bytes]) -> None:
    """Forward signals to the supervisor: Ctrl-C does not reach its session."""

    def forward(number: int, _: FrameType | None) -> None:
        supervisor.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
