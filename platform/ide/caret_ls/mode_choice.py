"""Chooses the mode of a completion from the text around the cursor. Pure.

In a docstring that was opened and is still empty, the mode is `docstring`. After a line that opens
a block without a body, it is `block`. Everywhere else, it is `inline`. If an automatically chosen
mode is not allowed, the mode is `inline`. The user can request a mode for one suggestion by a
command; this mode is then used.
"""

import re
from collections.abc import Container
from dataclasses import replace
from enum import StrEnum
from typing import Final

from caret_ls.completion_context import CompletionContext
from caret_ls.docstring_syntax import docstring_opener, is_docstring_opened


class CompletionMode(StrEnum):
    """The modes that this client requests, as the gateway names them."""

    INLINE = "inline"
    BLOCK = "block"
    DOCSTRING = "docstring"
    CHAT = "chat"
    EDIT = "edit"


_NEARBY_CHARS: Final = 2_000  # before and after the cursor that are searched for a block
# Languages in which a line that ends with an opening brace opens a block. A few of them also have
# words that open a block.
_BRACE_LANGUAGES: Final = frozenset(
    (
        *("c", "cpp", "c++", "cuda-cpp", "objective-c", "csharp", "c#", "java", "kotlin", "scala"),
        *("go", "rust", "swift", "dart", "groovy", "php", "zig", "solidity"),
        *("javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte"),
        *("shellscript", "powershell", "perl", "r", "awk"),
    )
)
_BRACE: Final = re.compile(r"\{\s*$")
# Lines that open a block by a word, by language. In Python, also the end of a signature that has
# several lines.
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
# The start of a line that ends a block or begins another part of it.
_CLOSING: Final = re.compile(r"[\])}]|(?:end|fi|done|esac|else|elif|rescue|ensure|until)\b")


def choose_mode(context: CompletionContext) -> CompletionMode:
    """Return the mode for a request for which the user chose none."""
    if is_docstring_opened(context):
        return CompletionMode.DOCSTRING
    return CompletionMode.BLOCK if _is_empty_block(context) else CompletionMode.INLINE


def apply_mode(
    context: CompletionContext, *, requested: CompletionMode | None, allowed: Container[str]
) -> CompletionContext:
    """Return the context with its mode.

    A mode that the user requested is kept even if it is not allowed. The skip rules then tell the
    user why there is no suggestion.
    """
    mode = requested or choose_mode(context)
    if requested is None and mode not in allowed:
        mode = CompletionMode.INLINE
    return replace(context, mode=mode, is_mode_requested=requested is not None)


def find_lead(context: CompletionContext, mode: CompletionMode | None) -> str:
    """Return the marks that open a docstring if the user requested one on a blank line.

    The client puts them before the completion. In all other cases, return "": a completion of
    another mode needs no marks, and text before the cursor may have opened the docstring already.
    `mode` is the requested mode; None: the user requested none.
    """
    is_needed = mode is CompletionMode.DOCSTRING and not context.line_before.strip()
    return docstring_opener(context.language) if is_needed else ""


def _is_empty_block(context: CompletionContext) -> bool:
    """Return whether the cursor is at the end of a line that opens a block without a body.

    The cursor may also be on the line below it.
    """
    if context.line_after.strip(" \t)]}"):
        return False
    line = context.line_before
    if not line.strip():
        text_above = context.prefix[-_NEARBY_CHARS:].rstrip()
        if context.prefix[len(context.prefix.rstrip()) :].count("\n") != 1:
            return False  # the last line with text is not directly above the cursor's line
        line = text_above.rpartition("\n")[2]
    return _opens_block(context.language, line) and not _has_body(context, line)


def _opens_block(language: str, line: str) -> bool:
    name = _ALIASES.get(language.lower(), language.lower())
    if name in _BRACE_LANGUAGES and _BRACE.search(line):
        return True
    words = _BLOCK_WORDS.get(name)
    return words is not None and words.search(line) is not None


def _has_body(context: CompletionContext, opening_line: str) -> bool:
    """Return whether the next line below the cursor that is not blank belongs to the block.

    It does if it is indented more than the opening line, and does not end the block.
    """
    for line in context.suffix[len(context.line_after) : _NEARBY_CHARS].splitlines():
        content = line.strip()
        if content:
            return _indent(line) > _indent(opening_line) and not _CLOSING.match(content)
    return False


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())
