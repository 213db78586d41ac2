"""Detects whether a cursor is in code, a comment or a string, by a few rules per language. Pure.

The rules are about quotes and comments; there is no grammar. A regular expression literal with a
quote, or a shell's here-document, can make the result wrong for the rest of the line or file. A
wrong result only costs a suggestion or a request.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from typing import Final


class SyntaxRegion(StrEnum):
    CODE = "code"
    COMMENT = "comment"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class _Rules:
    line_comments: tuple[str, ...] = ()  # signs that begin a comment up to the end of the line
    block_comments: tuple[tuple[str, str], ...] = ()  # start and end
    quotes: tuple[str, ...] = ('"', "'")  # of strings that end with their line at the latest
    long_quotes: tuple[str, ...] = ()  # of strings that may have several lines


_SLASHES: Final = ("//",)
_STARS: Final = (("/*", "*/"),)
_C: Final = _Rules(_SLASHES, _STARS)
# Rust: a single quote does not always begin a string; it also begins a lifetime.
_ONE_QUOTE: Final = _Rules(_SLASHES, _STARS, quotes=('"',))
_BACKTICKS: Final = _Rules(_SLASHES, _STARS, long_quotes=("`",))
_TRIPLES: Final = _Rules(_SLASHES, _STARS, long_quotes=('"""',))
_HASH: Final = _Rules(("#",))
_MARKUP: Final = _Rules(block_comments=(("<!--", "-->"),), quotes=())
_LANGUAGES_BY_RULES: Final = (
    (_C, ("c", "cpp", "c++", "cuda-cpp", "objective-c", "dart", "less", "scss", "css")),
    (_ONE_QUOTE, ("rust",)),
    (_TRIPLES, ("java", "kotlin", "scala", "swift", "csharp", "c#", "groovy")),
    (_BACKTICKS, ("go", "javascript", "javascriptreact", "typescript", "typescriptreact")),
    (_Rules(("#",), long_quotes=('"""', "'''")), ("python",)),
    (_HASH, ("ruby", "perl", "r", "elixir", "yaml", "toml", "dockerfile", "makefile", "cmake")),
    (_HASH, ("shellscript", "bash", "sh", "zsh", "fish", "powershell", "terraform", "nix")),
    (_Rules(("//", "#"), _STARS), ("php",)),
    (_Rules(("--",), _STARS), ("sql",)),
    (_Rules(("--",), (("--[[", "]]"),), long_quotes=("[[",)), ("lua",)),
    (_Rules(("--",), (("{-", "-}"),), quotes=('"',)), ("haskell", "elm")),
    (_MARKUP, ("html", "xml", "svg", "vue", "svelte")),
)
_RULES: Final = {name: rules for rules, names in _LANGUAGES_BY_RULES for name in names}
_ENDS: Final = {"[[": "]]"}  # closing quotes that differ from the opening ones


@dataclass(frozen=True, slots=True)
class _ScanState:
    """The state of the scan at a position of the text."""

    region: SyntaxRegion
    end: str | None  # the text that ends the region; None: code


_IN_CODE: Final = _ScanState(SyntaxRegion.CODE, None)


def region_at(language: str, prefix: str) -> SyntaxRegion:
    """Return the region after `prefix`, which is the text from the start of the file.

    In an unknown language, all text counts as code.
    """
    rules = _RULES.get(language.lower())
    if rules is None:
        return SyntaxRegion.CODE
    start = max(prefix.rfind("\n"), prefix.rfind("\r")) + 1
    return _scan(rules, prefix[start:], _state_after(rules, prefix[:start])).region


@lru_cache(maxsize=8)
def _state_after(rules: _Rules, lines: str) -> _ScanState:
    """Return the state after whole lines.

    The state is cached, because typing rarely changes the lines before the cursor's line.
    """
    return _scan(rules, lines, _IN_CODE)


def _scan(rules: _Rules, text: str, state: _ScanState) -> _ScanState:
    """Return the state after `text`, which begins in `state`."""
    at = 0
    while at < len(text):
        if state.end is not None:
            match = _ending_pattern(state.end).match(text, at)
            if match is None:
                return state
            state = _IN_CODE
        else:
            match = _opening_pattern(rules).search(text, at)
            if match is None:
                return _IN_CODE
            state = _opened_state(rules, match[0])
        at = match.end()
    return state


@cache
def _opening_pattern(rules: _Rules) -> re.Pattern[str]:
    """Return a pattern that matches the start of a comment or string; the longest start wins."""
    blocks = (start for start, _ in rules.block_comments)
    signs = {*rules.line_comments, *blocks, *rules.long_quotes, *rules.quotes}
    return re.compile("|".join(map(re.escape, sorted(signs, key=len, reverse=True))))


@cache
def _ending_pattern(end: str) -> re.Pattern[str]:
    """Return a pattern that matches the rest of a region, including the text that ends it.

    A character after a backslash does not end a string. A string in plain quotes ends with its line
    at the latest, because a string without its closing quote is probably unfinished.
    """
    if end == "\n":  # of a line comment
        return re.compile(r"[^\r\n]*+[\r\n]")
    if len(end) == 1 and end != "`":  # plain quotes
        return re.compile(rf"(?:[^\\\r\n{end}]|\\.)*+(?:{end}|\\?[\r\n])")
    # A block comment, or a string that may have several lines.
    return re.compile(rf"(?:[^\\]|\\.)*?{re.escape(end)}", re.DOTALL)


def _opened_state(rules: _Rules, sign: str) -> _ScanState:
    """Return the state after the start of a comment or string."""
    for start, end in rules.block_comments:
        if sign == start:
            return _ScanState(SyntaxRegion.COMMENT, end)
    if sign in rules.line_comments:
        return _ScanState(SyntaxRegion.COMMENT, "\n")
    return _ScanState(SyntaxRegion.STRING, _ENDS.get(sign, sign))
