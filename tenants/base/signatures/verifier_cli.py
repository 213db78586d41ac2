"""The command line of the offline verifiers: `manage.py COMMAND FILE --public-key KEYS`.

The user always names the file of public keys. Public keys that come with the file to verify cannot
be trusted more than that file.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from caret.foundation.crypto.signing import BadPublicKeys, PublicKeys, read_public_keys

OK, BROKEN, UNREADABLE = 0, 1, 2  # exit codes
_EXIT_CODES: Final = "Exit codes: 0 intact, 1 broken, 2 unreadable."


class UnreadableInput(Exception):
    """An input file cannot be read. The message names the file and the reason."""


@dataclass(frozen=True, slots=True)
class VerifierCli:
    command: str  # its name as an argument of manage.py
    description: str
    broken_error: type[Exception]  # `verify` raises it if the file is not intact
    # Gets the options (`file` is the path) and the keys; returns the report about an intact file.
    verify: Callable[[argparse.Namespace, PublicKeys], str]
    # Adds further arguments of the command.
    add_arguments: Callable[[argparse.ArgumentParser], object] = lambda _parser: None

    def run(self, argv: list[str]) -> int:
        """Verify the file, print the report and return the exit code."""
        options = self._make_parser().parse_args(argv)
        try:
            report = self.verify(options, _read_keys(options.public_key))
        except UnreadableInput as error:
            sys.stderr.write(f"{self.command}: {error}\n")
            return UNREADABLE
        except self.broken_error as error:
            sys.stdout.write(f"BROKEN: {error}.\n")
            return BROKEN
        sys.stdout.write(report)
        return OK

    def _make_parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"manage.py {self.command}", description=f"{self.description} {_EXIT_CODES}"
        )
        parser.add_argument("file", type=Path, metavar="FILE")
        self.add_arguments(parser)
        parser.add_argument(
            "--public-key",
            type=Path,
            required=True,
            metavar="FILE",
            help="output of `manage.py show_signing_keys`, obtained from the installation and not"
            " with the file to verify",
        )
        return parser


def open_file(path: Path) -> IO[bytes]:
    """Open a file for reading. Raises UnreadableInput."""
    try:
        return path.open("rb")
    except OSError as error:
        raise UnreadableInput(f"{path} cannot be read: {error.strerror}") from None


def _read_keys(path: Path) -> PublicKeys:
    """Read a file of public keys. Raises UnreadableInput."""
    try:
        return read_public_keys(path.read_bytes())
    except OSError as error:
        raise UnreadableInput(f"the public keys cannot be read: {error.strerror}: {path}") from None
    except BadPublicKeys as error:
        raise UnreadableInput(f"{path}: {error}") from None
