"""Where a cursor stands: in code, in a comment or in a string. By a few rules for each language.

It knows quotes and comments, no grammar: a regular expression literal with a quote in it, or a
shell's here-document, may mislead it for the rest of the line or file. What it gets wrong costs a
suggestion or a request, nothing more.
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
    quotes: tuple[str, ...] = ('"', "'")  # that end with their line at the latest
    long_quotes: tuple[str, ...] = ()  # that go over lines


_SLASHES: Final = ("//",)
_STARS: Final = (("/*", "*/"),)
_C: Final = _Rules(_SLASHES, _STARS)
# A single quote may stand alone there: a lifetime, a character of a name.
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
_ENDS: Final = {"[[": "]]"}  # of quotes that do not end as they begin


@dataclass(frozen=True, slots=True)
class _ScanState:
    """`end`: what ends the region, None for code."""

    region: SyntaxRegion
    end: str | None


_IN_CODE: Final = _ScanState(SyntaxRegion.CODE, None)


def region_at(language: str, prefix: str) -> SyntaxRegion:
    """Of the place behind `prefix`, which begins in code. A language that is not known is code."""
    rules = _RULES.get(language.lower())
    if rules is None:
        return SyntaxRegion.CODE
    start = max(prefix.rfind("\n"), prefix.rfind("\r")) + 1
    return _scan(rules, prefix[start:], _state_behind(rules, prefix[:start])).region


@lru_cache(maxsize=8)
def _state_behind(rules: _Rules, lines: str) -> _ScanState:
    """Whole lines: while somebody types in one line, those above stay as they are."""
    return _scan(rules, lines, _IN_CODE)


def _scan(rules: _Rules, text: str, state: _ScanState) -> _ScanState:
    at = 0
    while at < len(text):
        if state.end is not None:
            found = _ending(state.end).match(text, at)
            if found is None:
                return state
            state = _IN_CODE
        else:
            found = _openings(rules).search(text, at)
            if found is None:
                return _IN_CODE
            state = _opened(rules, found[0])
        at = found.end()
    return state


@cache
def _openings(rules: _Rules) -> re.Pattern[str]:
    """What begins a comment or a string, the longest of what begins alike first."""
    blocks = (start for start, _ in rules.block_comments)
    signs = {*rules.line_comments, *blocks, *rules.long_quotes, *rules.quotes}
    return re.compile("|".join(map(re.escape, sorted(signs, key=len, reverse=True))))


@cache
def _ending(end: str) -> re.Pattern[str]:
    """From where a region has begun, up to and with its end. What a backslash escapes ends no
    string; a string in plain quotes ends with its line, as nobody has closed it yet."""
    if end == "\n":
        return re.compile(r"[^\r\n]*+[\r\n]")
    if len(end) == 1 and end != "`":
        return re.compile(rf"(?:[^\\\r\n{end}]|\\.)*+(?:{end}|\\?[\r\n])")
    return re.compile(rf"(?:[^\\]|\\.)*?{re.escape(end)}", re.DOTALL)


def _opened(rules: _Rules, sign: str) -> _ScanState:
    for start, end in rules.block_comments:
        if sign == start:
            return _ScanState(SyntaxRegion.COMMENT, end)
    if sign in rules.line_comments:
        return _ScanState(SyntaxRegion.COMMENT, "\n")
    return _ScanState(SyntaxRegion.STRING, _ENDS.get(sign, sign))
