"""Parts that the command-line verifiers share: exit codes and trusted public keys.

The caller always names the keys. Keys that come with a file cannot be trusted more than the file
itself.
"""

import argparse
from pathlib import Path
from typing import IO, Final

from caret.foundation.crypto.signing import BadPublicKeys, PublicKeys, read_public_keys

OK, BROKEN, UNUSABLE = 0, 1, 2
EXIT_CODES: Final = "Exit codes: 0 sound, 1 broken, 2 unreadable."


class UnreadableInput(Exception):
    """An input file cannot be read. The text says which one and why."""


def add_public_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--public-key",
        type=Path,
        required=True,
        metavar="FILE",
        help="output of `manage.py show_signing_keys`, obtained from the installation and not"
        " with the file to verify",
    )


def read_keys(path: Path) -> PublicKeys:
    """Read a file of public keys. Raises UnreadableInput."""
    try:
        return read_public_keys(path.read_bytes())
    except OSError as error:
        raise UnreadableInput(f"the public keys cannot be read: {error.strerror}: {path}") from None
    except BadPublicKeys as error:
        raise UnreadableInput(f"{path}: {error}") from None


def open_file(path: Path) -> IO[bytes]:
    """Open a file for reading. Raises UnreadableInput."""
    try:
        return path.open("rb")
    except OSError as error:
        raise UnreadableInput(f"{path} cannot be read: {error.strerror}") from None
