"""Why `manage.py up` refuses or gives up, and the exit code of each reason.

* Refusal: one clear sentence for the terminal
  + PortInUse        3
  + NoDiskSpace      4
  + MissingFeature   5  (a processor feature, or a program of the system)
  + PartFailed       7  (which part, and the last lines of its log)
  + HomeInUse        8  (another supervisor works in this CARET_HOME)

A malformed setting is `caret.foundation.environment.BadSetting`, exit code 2. Code 6 is
`platform/scripts/setup`'s: an installation that failed.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    BAD_SETTING = 2
    PORT_IN_USE = 3
    NO_DISK_SPACE = 4
    MISSING_FEATURE = 5
    INSTALLATION_FAILED = 6
    PART_FAILED = 7
    HOME_IN_USE = 8
    INTERRUPTED = 130  # 128 + SIGINT, as shells write it


class StartupError(Exception):
    exit_code = ExitCode.PART_FAILED


class PortInUse(StartupError):
    exit_code = ExitCode.PORT_IN_USE


class NoDiskSpace(StartupError):
    exit_code = ExitCode.NO_DISK_SPACE


class MissingFeature(StartupError):
    exit_code = ExitCode.MISSING_FEATURE


class PartFailed(StartupError):
    """`log_tail` is what the part wrote last; empty when it wrote nothing."""

    exit_code = ExitCode.PART_FAILED

    def __init__(self, sentence: str, *, log_tail: str = "") -> None:
        super().__init__(sentence)
        self.log_tail = log_tail


class HomeInUse(StartupError):
    exit_code = ExitCode.HOME_IN_USE
