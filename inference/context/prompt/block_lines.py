"""Recognizes lines that open, continue and close blocks, with and without a grammar."""

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

from caret.foundation.parsing.grammars import grammar_of

_MAX_CHARS: Final = 200  # at each end of a line
_COLON: Final = r":\s*(?:#.*)?$"
_BRACKET: Final = r"(?:[{(\[]|=>|->)\s*$"
# Operators after which an expression continues on the next line.
_OPERATOR: Final = re.compile(r"(?:%>%|\|>|&&|\|\||<-|[^=!<>]=|\\)\s*$")
_LABEL: Final = r"^\s*(?:case\b.*|default|default\s*->):\s*$"
_TAG: Final = (
    r"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|wbr)\b)[A-Za-z][^<>/]*>\s*$"
)
_SHELL: Final = r"\b(?:do|then|else|in)\s*$"
_ENDED_BY_WORD: Final = (
    r"\b(?:do|then|else|repeat|begin|ensure)(?:\s*\|[^|]*\|)?\s*$"
    r"|^\s*(?:def|class|module|if|unless|while|until|case|for|elsif|elseif|when|rescue|struct|"
    r"mutable struct|function|macro|let|try|quote)\b(?!.*\b(?:end|then\s+\S.*)\b)"
)
_ASSIGNMENT: Final = r"(?:[^=!<>]=|\b(?:do|of|where|then|else|with|let))\s*$"
_FUNCTION: Final = r"\bfunction\b[\w\s.:]*\([^()]*\)\s*$"
_BY_LANGUAGE: Final = {
    "python": (_COLON,),
    "yaml": (_COLON,),
    "ruby": (_ENDED_BY_WORD,),
    "julia": (_ENDED_BY_WORD,),
    "elixir": (r"\bdo\s*$|\belse\s*$",),
    "lua": (r"\b(?:do|then|else|repeat)\s*$", _FUNCTION),
    "bash": (_SHELL,),
    "fsharp": (_ASSIGNMENT,),
    "haskell": (_ASSIGNMENT,),
    "scala": (_ASSIGNMENT,),
    "html": (_TAG,),
    "vue": (_TAG,),
    "svelte": (_TAG, r"\{[#:][^{}]*\}\s*$"),
    "tsx": (_TAG,),
    "csv": (),
    "markdown": (),
}
_OTHERS: Final = (_LABEL,)
# In these languages the brace of a definition may stand on a line of its own.
_LONE_BRACE: Final = frozenset({"c", "cpp", "csharp", "java", "php"})
_ENDS: Final = ("end", "fi", "done", "esac", "</", "{/", "```")
_BRANCHES: Final = (
    *("else", "elif", "elsif", "elseif", "except", "rescue", "ensure", "finally", "catch"),
    *("case", "when", "default", "{:"),
)
_END: Final = re.compile(r"(?:end|fi|done|esac)\b|</|\{/|```\s*$")
_BRANCH: Final = re.compile(rf"(?:{'|'.join(_BRANCHES[:-1])})\b|\{{:")
# Languages without a grammar, for clients that send a path only.
_BY_SUFFIX: Final = {
    ".csv": "csv",
    ".ex": "elixir",
    ".exs": "elixir",
    ".fs": "fsharp",
    ".hs": "haskell",
    ".jl": "julia",
    ".lua": "lua",
    ".md": "markdown",
    ".scala": "scala",
    ".svelte": "svelte",
    ".vue": "vue",
}


class BlockLines:
    """The lines of one language."""

    def __init__(self, language: str, path: str) -> None:
        grammar = grammar_of(language, path)
        suffix = PurePath(path).suffix.lower()
        name = grammar or language.lower() or _BY_SUFFIX.get(suffix, "")
        patterns = _BY_LANGUAGE.get(name, _OTHERS)
        self._opens = re.compile("|".join((_BRACKET, *patterns)))
        self._is_text = name in ("csv", "markdown")
        self.has_lone_braces = name in _LONE_BRACE

    def is_opening(self, line: str) -> bool:
        """Return whether the line opens a block."""
        return not self._is_text and self._opens.search(_clip(line)) is not None

    def is_unfinished(self, line: str) -> bool:
        """Return whether the line opens a block, leaves a bracket open or ends with an operator."""
        if self._is_text:
            return False
        line = _clip(line)
        return (
            self.is_opening(line) or _has_open_bracket(line) or _OPERATOR.search(line) is not None
        )

    def is_continued(self, line: str) -> bool:
        """Return whether an expression continues on the next line, without a block."""
        line = _clip(line)
        return not (self.is_opening(line) or _has_open_bracket(line))


def has_flat_body(line: str) -> bool:
    """Return whether the body of the block that the line opens may not be indented."""
    return re.match(r"\s*(?:inline\s+)?namespace\b", line) is not None


def can_become_end(beginning: str) -> bool:
    """Return whether a line that begins so may become the end or a branch of a block."""
    return any(mark.startswith(beginning) for mark in (*_ENDS, *_BRANCHES))


def is_end(line: str) -> bool:
    """Return whether the line closes a block with a word or a tag."""
    return _END.match(line.lstrip()) is not None


def is_branch(line: str) -> bool:
    return _BRANCH.match(line.lstrip()) is not None


def has_block(prefix: str, indent: int) -> bool:
    """Return whether the line above that is not indented more begins at this indentation."""
    opening = _next_outside(reversed(prefix.split("\n")), indent)
    return opening is not None and measure_indent(opening) == indent and not is_end(opening)


def is_end_missing(prefix: str, suffix: str, indent: int) -> bool:
    """Return whether a block with this indentation is open and the text after it does not end it.

    `suffix` begins at the end of the cursor's line.
    """
    if not has_block(prefix, indent):
        return False
    below = _next_outside(iter(suffix.split("\n")), indent)
    return below is None or measure_indent(below) != indent or not is_end(below)


def _next_outside(lines: Iterable[str], indent: int) -> str | None:
    """Return the first line that is not blank and not indented more."""
    return next((line for line in lines if line.strip() and measure_indent(line) <= indent), None)


def _clip(line: str) -> str:
    """Return both ends of a line; with the whole of a long line, the patterns take too long."""
    return line if len(line) <= 2 * _MAX_CHARS else line[:_MAX_CHARS] + line[-_MAX_CHARS:]


def _has_open_bracket(line: str) -> bool:
    return sum(map(line.count, "([{")) > sum(map(line.count, ")]}"))


def measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())
