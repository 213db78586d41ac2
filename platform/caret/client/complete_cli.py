"""`manage.py complete FILE --line N --column M`: streams one completion into the terminal."""

import argparse
import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from caret.client.websocket_client import CompletionStream, Frame, GatewayRefused, open_stream
from caret.foundation.home_dir import find_home_folder

# Editors' language IDs, by file suffix.
_LANGUAGES: Final = {
    ".py": "python",
    ".js": "javascript",
    ".ts": "typescript",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".c": "c",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".rb": "ruby",
    ".php": "php",
    ".sql": "sql",
    ".html": "html",
    ".css": "css",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".sh": "shellscript",
    ".md": "markdown",
}


def find_language(path: str) -> str:
    """Return the ID that editors use for the file's language; "" for an unknown suffix."""
    return _LANGUAGES.get(PurePath(path).suffix.lower(), "")


class CursorOutOfRange(Exception):
    """The cursor is outside of the file. The message names the valid range."""


@dataclass(frozen=True, slots=True)
class CursorSplit:
    prefix: str  # text before the cursor
    suffix: str  # text after the cursor


def split_at_cursor(text: str, *, line: int, column: int) -> CursorSplit:
    """Split a text at a line and column, both counted from 1.

    Column 1 is before a line's first character; the column after its last character is valid, too.
    Raises CursorOutOfRange.
    """
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        raise CursorOutOfRange(f"There is no line {line}: the file has {len(lines)}.")
    cursor_line = lines[line - 1]
    end = len(cursor_line) + 1
    if not 1 <= column <= end:
        raise CursorOutOfRange(f"There is no column {column}: line {line} ends at {end}.")
    before, after = lines[: line - 1], lines[line:]
    return CursorSplit(
        prefix="\n".join([*before, cursor_line[: column - 1]]),
        suffix="\n".join([cursor_line[column - 1 :], *after]),
    )


MODES: Final = ("inline", "fim", "block", "docstring")
_LINES_BEFORE: Final = 8  # shown up to the cursor
_LINES_AFTER: Final = 3  # shown after the completion
# Exit codes.
EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2


class MissingInput(Exception):
    """A file or a setting cannot be read or is missing. The message names it."""


@dataclass(frozen=True, slots=True)
class GatewayTarget:
    gateway_url: str
    api_key: str


def main(argv: list[str]) -> int:
    """Stream a completion into the terminal. Return the exit code."""
    options = _make_parser().parse_args(argv)
    try:
        split = split_at_cursor(_read_file(options.file), line=options.line, column=options.column)
        asyncio.run(_stream_completion(_find_target(options.tenant), options, split))
    except (CursorOutOfRange, MissingInput) as error:
        return _report_error(str(error), EXIT_USAGE)
    except GatewayRefused as error:
        return _report_error(f"{error} ({error.code})", EXIT_REFUSED)
    except OSError as error:
        return _report_error(f"The gateway cannot be reached: {error}.", EXIT_REFUSED)
    return 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manage.py complete",
        description="Request one completion and stream it into the terminal.",
        epilog="CARET_API_KEY and CARET_GATEWAY_URL set key and gateway; the default is the "
        "installation that `manage.py up` has started on this machine.",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--line", type=int, required=True, help="line of the cursor, from 1")
    parser.add_argument("--column", type=int, required=True, help="column of the cursor, from 1")
    parser.add_argument("--mode", choices=MODES, default="inline")
    parser.add_argument("--max-tokens", type=int, default=None)
    parser.add_argument("--repository", help="name of the repository, for its exclusion rules")
    parser.add_argument("--tenant", default="acme", help="tenant whose demonstration key is used")
    parser.add_argument("--json", action="store_true", help="print one JSON line instead")
    return parser


def _read_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise MissingInput(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise MissingInput(f"{file} is not UTF-8 text.") from error


def _find_path(file: Path) -> str:
    """Return the file's path from the root of its git repository, as exclusion rules need it.

    Return only the name of a file that is in no repository.
    """
    absolute_file = file.resolve()
    for folder in absolute_file.parents:
        if (folder / ".git").exists():
            return absolute_file.relative_to(folder).as_posix()
    return absolute_file.name


def _find_target(tenant: str) -> GatewayTarget:
    """Return URL and API key from the environment, or else those of the local installation.

    `tenant`: slug of the demonstration tenant whose key is used. Raises MissingInput.
    """
    url, key = os.environ.get("CARET_GATEWAY_URL"), os.environ.get("CARET_API_KEY")
    if url and key:
        return GatewayTarget(url, key)
    installation = _read_up_file()
    keys = {entry["slug"]: entry["api_key"] for entry in installation["tenants"]}
    if not key and tenant not in keys:
        raise MissingInput(f"There is no tenant {tenant} here; there are {', '.join(keys)}.")
    return GatewayTarget(url or installation["gateway_url"], key or keys[tenant])


def _read_up_file() -> dict[str, Any]:
    """Return the description of the local installation, from `manage.py up`."""
    try:
        installation: dict[str, Any] = json.loads((find_home_folder() / "up.json").read_text())
    except (OSError, ValueError) as error:  # missing or incomplete
        raise MissingInput(
            "Caret is not running. Start it with `make up`, or set CARET_GATEWAY_URL and "
            "CARET_API_KEY."
        ) from error
    return installation


async def _stream_completion(
    target: GatewayTarget, options: argparse.Namespace, split: CursorSplit
) -> None:
    frame: Frame = {
        "id": "1",
        "mode": options.mode,
        "path": _find_path(options.file),
        "language": find_language(options.file.name),
        "prefix": split.prefix,
        "suffix": split.suffix,
    }
    if options.repository is not None:
        frame["repository"] = {"name": options.repository}
    if options.max_tokens is not None:
        frame["max_tokens"] = options.max_tokens
    async with open_stream(target.gateway_url, target.api_key) as stream:
        if options.json:
            await _print_json(stream, frame)
        else:
            await _print_terminal(stream, frame, split, options.line)


async def _print_json(stream: CompletionStream, frame: Frame) -> None:
    """Print the whole text and the fields of the last frame as one JSON line."""
    text = ""
    async for received_frame in stream.complete(frame):
        if received_frame["type"] == "delta":
            text += received_frame["text"]
            continue
        sys.stdout.write(json.dumps({"text": text, **received_frame}) + "\n")


async def _print_terminal(
    stream: CompletionStream, frame: Frame, split: CursorSplit, line: int
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"{frame['path']}, line {line}", style="bold"))
    console.print(Text("\n".join(split.prefix.split("\n")[-_LINES_BEFORE:]), style="dim"), end="")
    async for received_frame in stream.complete(frame):
        if received_frame["type"] == "delta":
            console.print(Text(received_frame["text"], style="bold green"), end="")
            continue
        lines_after = split.suffix.split("\n")[:_LINES_AFTER]
        console.print(Text("\n".join(lines_after).rstrip("\n"), style="dim"))
        console.print(Text(_format_numbers(received_frame), style="cyan"))


def _format_numbers(done_frame: Frame) -> str:
    meta = done_frame["meta"]
    first = meta["first_token_ms"]
    cached = meta["cached_tokens"]
    times = (
        f"finish_reason {done_frame['finish_reason']}",
        "no text" if first is None else f"first token {first:.1f} ms",
        f"total {meta['total_ms']:.1f} ms",
    )
    tokens = (
        f"prompt {meta['prompt_tokens']} tokens"
        + ("" if cached is None else f", {cached} of them cached"),
        f"generated {meta['generated_tokens']}",
        f"pool {meta['pool']}",
    )
    return "\n".join("  ".join(parts) for parts in (times, tokens))  # within 80 columns


def _report_error(message: str, code: int) -> int:
    sys.stderr.write(f"caret: {message}\n")
    return code
