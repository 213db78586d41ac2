"""Decides whether an automatic completion is one line or a block.

Usually it is one line, which users can read at a glance. It is a block after text that opens a
block, and on an empty line that begins a paragraph: at the top of a file, or after a blank line, a
comment or a decorator.
"""

import re
from typing import Final

from caret.contracts.policy import Mode
from caret.foundation.parsing.grammars import Grammar, grammar_of
from inference.completion.request import CompletionRequest
from inference.context.prompt.cursor_text import line_after, line_before

_BRACKET: Final = re.compile(r"(?:[{(\[]|=>|->)\s*$")
_COLON: Final = re.compile(r"(?:[:{(\[])\s*(?:#.*)?$")
_RUBY: Final = re.compile(
    r"(?:\b(?:do|then|else|begin|ensure)(?:\s*\|[^|]*\|)?|[{(\[])\s*$"
    r"|^\s*(?:def|class|module|if|unless|while|until|case|for|elsif|when|rescue)\b(?!.*\bend\b)"
)
_SHELL: Final = re.compile(r"(?:\b(?:do|then|else|in)|[{(])\s*$")
_TAG: Final = re.compile(r"<[A-Za-z][^<>/]*>\s*$|[{(]\s*$")
_OPENS: Final = {
    Grammar.PYTHON: _COLON,
    Grammar.YAML: _COLON,
    Grammar.RUBY: _RUBY,
    Grammar.BASH: _SHELL,
    Grammar.HTML: _TAG,
    Grammar.TSX: re.compile(rf"{_BRACKET.pattern}|{_TAG.pattern}"),
}
_BEGINS_PARAGRAPH: Final = re.compile(r"\s*(?:#|//|/\*|\*|--|<!--|@|\"\"\"|''')")
_ENDS_DOCUMENTATION: Final = re.compile(r"(?:\"\"\"|'''|\*/|-->)\s*$")


def is_single_line(request: CompletionRequest) -> bool:
    if request.is_raw or request.mode is not Mode.INLINE:
        return False
    before = line_before(request.prefix)
    if line_after(request.suffix).strip():
        return True
    opens = _OPENS.get(grammar_of(request.language, request.path) or Grammar.C, _BRACKET)
    if before.strip():
        return opens.search(before) is None
    return not _begins_paragraph(_line_above(request.prefix), opens)


def _line_above(prefix: str) -> str:
    end = prefix.rfind("\n")
    return prefix[prefix.rfind("\n", 0, max(0, end)) + 1 : max(0, end)]


def _begins_paragraph(line_above: str, opens: re.Pattern[str]) -> bool:
    return (
        not line_above.strip()
        or opens.search(line_above) is not None
        or _BEGINS_PARAGRAPH.match(line_above) is not None
        or _ENDS_DOCUMENTATION.search(line_above) is not None
    )
