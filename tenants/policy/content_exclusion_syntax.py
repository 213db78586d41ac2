"""Text format of content exclusions, for reading and writing. Pure.

    # every repository
    "*":
      - "**/.env"
      - "secrets/**"
    payments: ["src/keys/**", "*.pem"]

The format looks like YAML and is parsed line by line. In addition, a line may contain only a
pattern, such as `**/secrets/**`, which applies to all repositories. A line that cannot be parsed is
an error, and the message contains the line's number. Such a line is never skipped, because files
that its rule should exclude would then be sent.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tenants.base.errors import InvalidValue

FIELD: Final = "content_exclusion"
_ALL: Final = "*"  # all repositories
_DOUBLE: Final = r'"(?:[^"\\]|\\.)*"'  # a text in double quotes; \ escapes the next character
_SINGLE: Final = r"'(?:[^']|'')*'"  # a text in single quotes; '' means one quote
_QUOTED: Final = rf"{_DOUBLE}|{_SINGLE}"
_COMMENT: Final = r"(?:\s+#.*)?"  # white space, # and a text, or nothing
# No two adjacent parts of a regular expression match the same white space, so that matching takes
# time linear in the line's length. After a text without quotes, `(?<=\s)#` is the # of a comment:
# the text itself has already matched the white space before the #.
_REPOSITORY: Final = re.compile(  # a repository and a colon; `rest` follows the colon
    rf"(?P<name>(?:{_QUOTED})\s*|[^\s\"'#\[\]-][^\"'#\[\]]*?):(?P<rest>(?:\s.*)?)"
)
# A dash and a pattern:  - "**/.env" # comment
_GLOB: Final = re.compile(
    rf"\s*-\s+(?:(?P<quoted>{_QUOTED})(?:\s+#.*|\s*)|(?P<bare>[^\s\"'#][^#]*)(?:(?<=\s)#.*)?)"
)
# A list of patterns:  ["src/keys/**", "*.pem"] # comment
_LIST: Final = re.compile(rf"\s*\[(?P<globs>.*)\]{_COMMENT}\s*")
# One pattern of a list, with the comma after it.
_PART: Final = re.compile(rf"(?P<glob>(?:{_QUOTED})\s*|[^\s\"',\[\]#][^\"',\[\]#]*)(?:,|$)")
# A line that contains only a pattern, without quotes.
_PATTERN: Final = re.compile(r"(?P<glob>[^\s\"'#-][^\"'#]*)(?:(?<=\s)#.*)?")
_NOTHING: Final = re.compile(r"\s*(?:#.*)?")  # an empty line, or only a comment
_ESCAPE: Final = re.compile(r"\\(.)")  # in double quotes


@dataclass(slots=True)
class _ParseState:
    globs_by_repository: dict[str, list[str]] = field(default_factory=dict)
    everywhere: list[str] = field(default_factory=list)  # patterns that are alone on their lines
    repository: str | None = None  # the repository of the next patterns; None: none was named yet


def parse_exclusions(text: str) -> dict[str, tuple[str, ...]]:
    """Return globs by repository ("*": all). Raises InvalidValue, which names the line."""
    state = _ParseState()
    for number, line in enumerate(text.splitlines(), start=1):
        if not _NOTHING.fullmatch(line):
            _parse_line(state, number, line)
    globs_by_repository = state.globs_by_repository
    if state.everywhere:
        globs_by_repository = globs_by_repository | {
            _ALL: [*state.everywhere, *globs_by_repository.get(_ALL, ())]
        }
    return {name: tuple(dict.fromkeys(globs)) for name, globs in globs_by_repository.items()}


def format_exclusions(exclusion: dict[str, tuple[str, ...]]) -> str:
    """Format content exclusions: "*" first, then the repositories by name."""
    return "\n".join(_format_lines(exclusion))


def _parse_line(state: _ParseState, number: int, line: str) -> None:
    """Add the rule of line `number` to the state. Raises InvalidValue."""
    if match := _GLOB.fullmatch(line):
        if state.repository is None:
            raise InvalidValue(
                FIELD,
                'Line {number}: start with a repository and a colon ("*": for all).',
                number=number,
            )
        glob = match["quoted"] or match["bare"].rstrip()
        state.globs_by_repository[state.repository].append(_unquote_text(number, glob))
        return
    # As in YAML, the name of a repository is not indented.
    match = None if line[:1].isspace() else _REPOSITORY.fullmatch(line)
    if match is None and (glob := _parse_pattern(line)):
        state.everywhere.append(glob)
        return
    if match is None:
        raise InvalidValue(
            FIELD,
            'Line {number}: enter a repository and a colon ("*": for all), or a dash and '
            "a pattern.",
            number=number,
        )
    name = _unquote_text(number, match["name"].rstrip())
    if name in state.globs_by_repository:
        raise InvalidValue(
            FIELD, 'Line {number}: "{name}" is already defined above.', number=number, name=name
        )
    state.repository = name
    state.globs_by_repository[name] = list(_parse_list(number, match["rest"]))


def _parse_pattern(line: str) -> str:
    """Return the pattern, if the line contains only a pattern; otherwise "".

    A line that contains none of *, ? and / is not a pattern. It may be a repository whose colon is
    missing.
    """
    match = _PATTERN.fullmatch(line)
    glob = "" if match is None else match["glob"].rstrip()
    return glob if any(sign in glob for sign in "*?/") else ""


def _parse_list(number: int, list_text: str) -> Iterator[str]:
    """Yield the patterns of the list after a repository's colon. Raises InvalidValue."""
    if _NOTHING.fullmatch(list_text):
        return
    match = _LIST.fullmatch(list_text)
    if match is None:
        raise InvalidValue(
            FIELD,
            'Line {number}: after the colon, enter nothing or a list such as ["**/.env", "*.pem"].',
            number=number,
        )
    globs = match["globs"].strip()
    while globs:
        part = _PART.match(globs)
        if part is None:
            raise InvalidValue(
                FIELD, "Line {number}: separate the patterns in a list with commas.", number=number
            )
        yield _unquote_text(number, part["glob"].rstrip())
        globs = globs[part.end() :].strip()


def _unquote_text(number: int, text: str) -> str:
    """Return a name or pattern without its quotes. Raises InvalidValue.

    Without quotes, a text must not begin with *, because YAML would read it as an alias.
    """
    if text.startswith('"'):
        text = _ESCAPE.sub(r"\1", text[1:-1])
    elif text.startswith("'"):
        text = text[1:-1].replace("''", "'")
    elif text.startswith("*"):
        raise InvalidValue(
            FIELD,
            'Line {number}: put patterns that start with * in quotes: "{text}".',
            number=number,
            text=text,
        )
    if not text:
        raise InvalidValue(FIELD, "Line {number}: the name or pattern is empty.", number=number)
    return text


def _format_lines(exclusion: dict[str, tuple[str, ...]]) -> Iterator[str]:
    for name in sorted(exclusion, key=lambda repository: (repository != _ALL, repository)):
        yield f"{_quote_text(name)}:"
        for glob in exclusion[name]:
            yield f"  - {_quote_text(glob)}"


def _quote_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
