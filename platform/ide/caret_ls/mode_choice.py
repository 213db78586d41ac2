"""Chooses the mode of a completion from the text around the cursor. Pure.

Inside a docstring that has just been opened, the mode is `docstring`. Where a line opens a block
that is still empty, it is `block`. Everywhere else it is `inline`. A command of the user overrides
this for one request. Where a mode that was chosen automatically is not allowed, `inline` replaces
it.
"""

import re
from collections.abc import Container
from dataclasses import replace
from enum import StrEnum
from typing import Final

from caret_ls.completion_context import CompletionContext
from caret_ls.docstring_syntax import (
    docstring_opener,
    is_docstring_opened,
)


class CompletionMode(StrEnum):
    """The modes that this client requests, as the gateway names them."""

    INLINE = "inline"
    BLOCK = "block"
    DOCSTRING = "docstring"
    CHAT = "chat"
    EDIT = "edit"


_NEARBY_CHARS: Final = 2_000
# Languages in which a line that ends with an opening brace opens a block. A few of them also have
# words that open a block.
_BRACE_LANGUAGES: Final = frozenset(
    (
        *("c", "cpp", "c++", "cuda-cpp", "objective-c", "csharp", "c#", "java", "kotlin", "scala"),
        *("go", "rust", "swift", "dart", "groovy", "php", "zig", "solidity"),
        *("javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte"),
        *("shellscript", "bash", "sh", "zsh", "powershell", "perl", "r", "lua", "awk", "julia"),
    )
)
_BRACE: Final = re.compile(r"\{\s*$")
_BLOCK_WORDS: Final = {
    "python": re.compile(
        r"^\s*(?:async\s+)?(?:def|class|if|elif|else|for|while|try|except|finally|with|match|case)"
        r"\b.*:\s*$|^\s*\).*:\s*$"
    ),
    "ruby": re.compile(
        r"^\s*(?:def|class|module|if|unless|while|until|case|begin)\b(?!.*\bend\b)"
        r"|\bdo\s*(?:\|[^|]*\|\s*)?$"
    ),
    "lua": re.compile(r"\bfunction\b[^)]*\)\s*$|\b(?:then|do|repeat)\s*$"),
    "shellscript": re.compile(r"\b(?:then|do)\s*$"),
    "elixir": re.compile(r"\bdo\s*$"),
    "julia": re.compile(r"^\s*(?:function|struct|for|while|if|begin|module)\b(?!.*\bend\b)"),
}
_ALIASES: Final = {"bash": "shellscript", "sh": "shellscript", "zsh": "shellscript"}
_CLOSING: Final = re.compile(r"[\])}]|(?:end|fi|done|esac|else|elif|rescue|ensure|until)\b")


def choose_mode(context: CompletionContext) -> CompletionMode:
    """Return the mode for a request that the user made without naming one."""
    if is_docstring_opened(context):
        return CompletionMode.DOCSTRING
    return CompletionMode.BLOCK if _is_empty_block(context) else CompletionMode.INLINE


def apply_mode(
    context: CompletionContext, *, requested: CompletionMode | None, allowed: Container[str]
) -> CompletionContext:
    """Return the context with its mode.

    A mode that the user requested is kept even if it is not allowed; the caller tells why.
    """
    mode = requested or choose_mode(context)
    if requested is None and mode not in allowed:
        mode = CompletionMode.INLINE
    return replace(context, mode=mode, is_mode_requested=requested is not None)


def find_lead(context: CompletionContext, mode: CompletionMode | None) -> str:
    """Return the text that a suggestion in the mode begins with; "" if it begins at the cursor.

    On an empty line, a requested docstring begins with the marks that open it.
    """
    is_needed = mode is CompletionMode.DOCSTRING and not context.line_before.strip()
    return docstring_opener(context.language) if is_needed else ""


def _is_empty_block(context: CompletionContext) -> bool:
    if context.line_after.strip(" \t)]}"):
        return False
    line = context.line_before
    if not line.strip():
        before = context.prefix[-_NEARBY_CHARS:].rstrip()
        if context.prefix[len(context.prefix.rstrip()) :].count("\n") != 1:
            return False  # a blank line stands between
        line = before.rpartition("\n")[2]
    return _opens_block(context.language, line) and not _has_body(context, line)


def _opens_block(language: str, line: str) -> bool:
    name = _ALIASES.get(language.lower(), language.lower())
    if name in _BRACE_LANGUAGES and _BRACE.search(line):
        return True
    words = _BLOCK_WORDS.get(name)
    return words is not None and words.search(line) is not None


def _has_body(context: CompletionContext, opening_line: str) -> bool:
    """Return whether the next line of text below the cursor is deeper than the opening line."""
    for line in context.suffix[len(context.line_after) : _NEARBY_CHARS].splitlines():
        content = line.strip()
        if content:
            return _indent(line) > _indent(opening_line) and not _CLOSING.match(content)
    return False


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())
