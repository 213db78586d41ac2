"""Detects whether a cursor is in code, a comment or a string, by a few rules per language.

It knows quotes and comments, but no grammar. A regular expression literal with a quote, or a
shell's here-document, may mislead it for the rest of the line or file. A mistake only costs a
suggestion or a request.
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
    line_comments: tuple[str, ...] = ()
    block_comments: tuple[tuple[str, str], ...] = ()
    quotes: tuple[str, ...] = ('"', "'")  # end with their line at the latest
    long_quotes: tuple[str, ...] = ()  # may span lines


_SLASHES: Final = ("//",)
_STARS: Final = (("/*", "*/"),)
_C: Final = _Rules(_SLASHES, _STARS)
# Languages in which a single quote may stand alone, as in a lifetime or in a name.
_ONE_QUOTE: Final = _Rules(_SLASHES, _STARS, quotes=('"',))
_BACKTICKS: Final = _Rules(_SLASHES, _STARS, long_quotes=("`",))
_TRIPLES: Final = _Rules(_SLASHES, _STARS, long_quotes=('"""',))
_HASH: Final = _Rules(("#",))
_MARKUP: Final = _Rules(block_comments=(("<!--", "-->"),), quotes=())
_BY_RULES: Final = (
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
_RULES: Final = {name: rules for rules, names in _BY_RULES for name in names}
_ENDS: Final = {"[[": "]]"}  # end quotes that differ from the start


@dataclass(frozen=True, slots=True)
class _ScanState:
    """The state of the scan; `end` is the text that ends the region, None for code."""

    region: SyntaxRegion
    end: str | None


_IN_CODE: Final = _ScanState(SyntaxRegion.CODE, None)


def region_at(language: str, prefix: str) -> SyntaxRegion:
    """Return the region after `prefix`, which starts in code. An unknown language is all code."""
    rules = _RULES.get(language.lower())
    if rules is None:
        return SyntaxRegion.CODE
    start = max(prefix.rfind("\n"), prefix.rfind("\r")) + 1
    return _scan(rules, prefix[start:], _state_after(rules, prefix[:start])).region


@lru_cache(maxsize=8)
def _state_after(rules: _Rules, lines: str) -> _ScanState:
    """Return the state after whole lines, cached because typing rarely changes lines above."""
    return _scan(rules, lines, _IN_CODE)


def _scan(rules: _Rules, text: str, state: _ScanState) -> _ScanState:
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
    """Match the start of a comment or string, longer ones first."""
    blocks = (start for start, _ in rules.block_comments)
    signs = {*rules.line_comments, *blocks, *rules.long_quotes, *rules.quotes}
    return re.compile("|".join(map(re.escape, sorted(signs, key=len, reverse=True))))


@cache
def _ending_pattern(end: str) -> re.Pattern[str]:
    """Match from the start of a region to its end, inclusive.

    An escaped character does not end a string. A string in plain quotes ends with its line at the
    latest, because it is probably unfinished.
    """
    if end == "\n":
        return re.compile(r"[^\r\n]*+[\r\n]")
    if len(end) == 1 and end != "`":
        return re.compile(rf"(?:[^\\\r\n{end}]|\\.)*+(?:{end}|\\?[\r\n])")
    return re.compile(rf"(?:[^\\]|\\.)*?{re.escape(end)}", re.DOTALL)


def _opened_state(rules: _Rules, sign: str) -> _ScanState:
    for start, end in rules.block_comments:
        if sign == start:
            return _ScanState(SyntaxRegion.COMMENT, end)
    if sign in rules.line_comments:
        return _ScanState(SyntaxRegion.COMMENT, "\n")
    return _ScanState(SyntaxRegion.STRING, _ENDS.get(sign, sign))
