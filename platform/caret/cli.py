"""`manage.py COMMAND`: runs the commands that need no Django settings. Django runs all others.

`up` and `down` must not read the settings, because the secrets for them may not exist yet.
"""

import gc
import sys
from collections.abc import Callable
from textwrap import indent
from typing import Final

from caret.foundation.environment import BadSetting
from caret.local.errors import ExitCode, ServiceFailed, StartupError

# New objects before a garbage collection; Python's default is 700. A start creates many objects and
# little garbage: with the default, collections take a quarter of the CPU time of Django's start.
# The limit holds until the command ends. Only gateways replace it when they have started: they
# schedule their collections themselves.
_GC_THRESHOLD: Final = 100_000


def run(argv: list[str]) -> int:
    """Run a command and return its exit code. `argv[0]` is the script.

    After an expected error, such as a wrong setting, a port in use or a full disk, print a message
    without a traceback.
    """
    gc.set_threshold(_GC_THRESHOLD)
    command = argv[1] if len(argv) > 1 else "help"
    if command in _WITHOUT_ARGUMENTS and not _HELP_OPTIONS.isdisjoint(argv[2:]):
        return _print_usage(command)
    try:
        return _COMMANDS.get(command, _django)(argv)
    except BadSetting as error:
        return _report_error(str(error), ExitCode.BAD_SETTING)
    except ServiceFailed as error:
        return _report_error(f"{error}\n{indent(error.log_tail, '    ')}", error.exit_code)
    except StartupError as error:
        return _report_error(str(error), error.exit_code)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _help(argv: list[str]) -> int:
    """Print the overview of commands, or a command's help.

    Django's own overview does not list the commands of this module.
    """
    arguments = argv[2:]
    if not arguments or arguments[0] in _HELP_NAMES:
        from caret.cli_help import render_overview

        sys.stdout.write(render_overview())
        return ExitCode.OK
    if arguments[0] in _COMMANDS:
        return run([argv[0], arguments[0], "--help"])
    return _django(argv)


def _print_usage(command: str) -> int:
    """Print the help of a command that takes no arguments."""
    from caret.cli_help import render_usage

    sys.stdout.write(render_usage(command))
    return ExitCode.OK


def _up(argv: list[str]) -> int:
    from caret.local import up

    return up.main(argv[2:])


def _down(argv: list[str]) -> int:
    from caret.local import down

    return down.main(argv[2:])


def _complete(argv: list[str]) -> int:
    from caret.client.complete_cli import main

    return main(argv[2:])


def _capacity(argv: list[str]) -> int:
    from caret.capacity.cli import main

    return main(argv[2:])


def _evaluate(argv: list[str]) -> int:
    from inference.evaluation.cli import main

    return main(argv[2:])


def _index_public_code(argv: list[str]) -> int:
    from inference.filtering.build_public_code_index import main

    return main(argv[2:])


def _verify_audit(argv: list[str]) -> int:
    from tenants.security.audit.export_verification import main

    return main(argv[2:])


def _verify_certificate(argv: list[str]) -> int:
    from tenants.privacy.retention.verification import main

    return main(argv[2:])


def _verify_export(argv: list[str]) -> int:
    from tenants.compliance.exports.verify_cli import main

    return main(argv[2:])


def _verify_bundle(argv: list[str]) -> int:
    from tenants.compliance.data_subjects.verification import main

    return main(argv[2:])


def _gateway(_argv: list[str]) -> int:
    from caret.gateway_server import main

    return main()


def _probe(_argv: list[str]) -> int:
    from caret.client.synthetic_probe import main

    return main()


def _relay(_argv: list[str]) -> int:
    from caret.relay.relay_server import main

    return main()


def _django(argv: list[str]) -> int:
    from django.core.management import execute_from_command_line

    execute_from_command_line(argv)
    return ExitCode.OK


_HELP_OPTIONS: Final = frozenset({"--help", "-h"})
_HELP_NAMES: Final = _HELP_OPTIONS | {"help"}
# These commands have no parser that handles `--help`. `down` gets arguments only to refuse them.
_WITHOUT_ARGUMENTS: Final = frozenset({"down", "gateway", "relay", "probe"})
_COMMANDS: dict[str, Callable[[list[str]], int]] = {
    **dict.fromkeys(_HELP_NAMES, _help),
    "up": _up,
    "down": _down,
    "complete": _complete,
    "capacity": _capacity,
    "evaluate": _evaluate,
    "index_public_code": _index_public_code,
    "verify_audit": _verify_audit,
    "verify_certificate": _verify_certificate,
    "verify_export": _verify_export,
    "verify_bundle": _verify_bundle,
    "gateway": _gateway,
    "relay": _relay,
    "probe": _probe,
}


def _report_error(message: str, code: ExitCode) -> int:
    sys.stderr.write(f"caret: {message.rstrip()}\n")
    return code
