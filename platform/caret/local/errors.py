"""Errors of `manage.py up`, and their exit codes.

* StartupError: a message for the terminal; exit code 7 unless a subclass has its own
  + PortInUse        3
  + NoDiskSpace      4
  + MissingFeature   5  (the machine or the installation lacks something, such as a GPU)
  + ServiceFailed    7  (names the service; may have the last lines of its log)
  + HomeInUse        8  (another supervisor uses this CARET_HOME)

A malformed setting is `caret.foundation.environment.BadSetting`, exit code 2. Code 6 is for a
failed installation by `platform/scripts/setup`.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    BAD_SETTING = 2
    PORT_IN_USE = 3
    NO_DISK_SPACE = 4
    MISSING_FEATURE = 5
    INSTALLATION_FAILED = 6
    SERVICE_FAILED = 7
    HOME_IN_USE = 8
    INTERRUPTED = 130  # 128 + SIGINT, as in shells


class StartupError(Exception):
    exit_code = ExitCode.SERVICE_FAILED


class PortInUse(StartupError):
    exit_code = ExitCode.PORT_IN_USE


class NoDiskSpace(StartupError):
    exit_code = ExitCode.NO_DISK_SPACE


class MissingFeature(StartupError):
    exit_code = ExitCode.MISSING_FEATURE


class ServiceFailed(StartupError):
    """A service or a command failed.

    `log_tail` is the end of its log, for the terminal; "" if the sentence is enough.
    """

    exit_code = ExitCode.SERVICE_FAILED

    def __init__(self, sentence: str, *, log_tail: str = "") -> None:
        super().__init__(sentence)
        self.log_tail = log_tail


class HomeInUse(StartupError):
    exit_code = ExitCode.HOME_IN_USE
