"""`caret-ls`: the language server on standard input and output, started by an editor."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from caret_ls import VERSION
from caret_ls.log_config import begin_log, log_file
from caret_ls.server import make_server


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="caret-ls",
        description="Caret's language server. Editors start it.",
        epilog="Settings, keys and editors: platform/docs/editors.md.",
    )
    parser.add_argument("--version", action="version", version=f"caret-ls {VERSION}")
    # Some editors pass this to every server.
    parser.add_argument("--stdio", action="store_true", help="use stdin and stdout (always)")
    parser.add_argument("--log", type=Path, default=log_file(), help="log file")
    options = parser.parse_args(arguments)
    begin_log(options.log)
    make_server().start_io()
    return 0
