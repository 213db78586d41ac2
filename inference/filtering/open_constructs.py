"""Finds constructs that a text has opened but not closed, and candidates that close them.

A line may end with an open bracket, or open a block whose body comes next. Such a line is valid,
but the parser needs the closing text, too. To find open constructs, a few tokens are enough:
brackets, quotes, and the words or tags that open and close blocks. Brackets in strings and comments
are skipped.
"""

import re
from collections.abc import Sequence
from typing import Final

from caret.foundation.parsing.grammars import Grammar

_PAIRS: Final = {"(": ")", "[": "]", "{": "}"}
_QUOTES: Final = ('"""', "'''", '"', "'", "`", "/*")
# `\\.` is an escaped character, which ends no string.
_TOKENS: Final = re.compile(r"""\"{3}|'{3}|\\.|["'`()\[\]{}\n]|/\*|\*/|//|\#""")
_SLASH_COMMENTS: Final = frozenset(
    {
        *(Grammar.C, Grammar.CPP, Grammar.CSHARP, Grammar.GO, Grammar.JAVA, Grammar.JAVASCRIPT),
        *(Grammar.PHP, Grammar.RUST, Grammar.TSX, Grammar.TYPESCRIPT),
    }
)
_HASH_COMMENTS: Final = frozenset({Grammar.PYTHON, Grammar.RUBY, Grammar.BASH, Grammar.YAML})
# Quotes that may span several lines.
_LONG_QUOTES: Final = {
    Grammar.PYTHON: ('"""', "'''"),
    Grammar.JAVA: ('"""',),
    Grammar.JAVASCRIPT: ("`",),
    Grammar.TYPESCRIPT: ("`",),
    Grammar.TSX: ("`",),
    Grammar.GO: ("`",),
    **dict.fromkeys((Grammar.BASH, Grammar.RUBY, Grammar.PHP, Grammar.SQL), ('"', "'")),
}
# The words that open and end blocks of Ruby. The quantifiers are possessive, also in _TAG:
# backtracking would take quadratic time.
_RUBY: Final = re.compile(
    r"^[ \t]*+(?:(?P<opens>(?:def|class|module|if|unless|while|until|case|begin|for)\b)"
    r"|(?P<ends>end\b))|\bdo\b(?P<block>[ \t]*+(?:\|[^|\n]*+\|)?+[ \t]*+$)",
    re.MULTILINE,
)
_SHELL: Final = re.compile(
    r"(?:^|;|&&|\|\|)[ \t]*(if|while|until|for|case|fi|done|esac)\b", re.MULTILINE
)
# The word that opens a block -> the words that begin and end its body; "": no word begins it.
_SHELL_ENDS: Final = {
    "if": ("then", "fi"),
    "while": ("do", "done"),
    "until": ("do", "done"),
    "for": ("do", "done"),
    "case": ("", "esac"),
}
_TAG: Final = re.compile(r"<(/?)([A-Za-z][\w-]*+)([^<>]*+)>")
_VOID_TAGS: Final = frozenset(
    {
        *("area", "base", "br", "col", "embed", "hr", "img", "input"),
        *("link", "meta", "source", "track", "wbr"),
    }
)
# At the end of the text: a block that needs more than its closing brace (see _add_partners).
_TRY: Final = re.compile(r"\btry\s*\{\s*$")
_DO: Final = re.compile(r"\bdo\s*\{\s*$")
_HERE_DOCUMENTS: Final = frozenset({Grammar.BASH, Grammar.PHP, Grammar.RUBY})
_HERE_DOCUMENT: Final = re.compile(r"<<[<~-]?[ \t]*['\"]?([A-Za-z_]\w*)")
# An operand must follow these; any name will do. (Not after a brace: a block may be empty.)
_WANTS_MORE: Final = tuple(",([+-*/%=&|<>?!.~^")
# Endings that may complete a line whose brackets are closed: the end of its statement, or a block.
_TAILS: Final[dict[Grammar, tuple[str, ...]]] = {
    Grammar.BASH: ("\n{ :; }", "\nthen\n:\nfi", "\ndo\n:\ndone"),
    Grammar.C: (";", "{}"),
    Grammar.CPP: (";", "{}"),
    Grammar.CSHARP: (";", "{}", " get; }"),
    Grammar.CSS: (";", "{}"),
    Grammar.GO: (" {}",),
    Grammar.JAVA: (";", "{}"),
    Grammar.JAVASCRIPT: (";", "{}"),
    Grammar.PHP: (";", "{}"),
    Grammar.RUST: (";", "{}", ","),
    Grammar.SQL: (";",),
    Grammar.TSX: (";", "{}"),
    Grammar.TYPESCRIPT: (";", "{}"),
}


def find_closing_candidates(grammar: Grammar, text: str) -> Sequence[str]:
    """Return texts that may complete `text`, in the order in which to try them.

    `text` starts at the beginning of a line of code. No candidate is empty.
    """
    closers = _find_closers(grammar, text)
    closing = closers + _find_block(grammar, text)
    operand = " x" if text.rstrip().endswith(_WANTS_MORE) else ""
    tails = _TAILS.get(grammar, ())
    texts = [closing, *(closers + tail for tail in tails)]
    if closers and grammar is Grammar.PYTHON:
        # The brackets may be in the head of a block, as in `def f(a,`.
        texts.append(f"{closers}:{_python_body(f'{text}:')}")
    return [*(text for text in texts if text), *(operand + text for text in texts if operand)]


def is_inside_literal(grammar: Grammar, text: str) -> bool:
    """Return whether `text` ends inside a string or comment of several lines.

    There, indentation has no meaning. `text` starts at the beginning of a line of code.
    """
    _, quote = _scan_text(grammar, text)
    return quote in _long_quotes(grammar) or _is_in_here_document(grammar, text)


def _find_closers(grammar: Grammar, text: str) -> str:
    """Return the text that closes brackets, long strings and comments, the innermost first."""
    stack, quote = _scan_text(grammar, text)
    end = ""
    if quote in _long_quotes(grammar):
        end = "*/" if quote == "/*" else quote
    return _add_partners(grammar, text, end + "".join(reversed(stack)))


def _scan_text(grammar: Grammar, text: str) -> tuple[list[str], str]:
    """Return the closing brackets for all open ones, innermost last, and the open quote or ""."""
    stack: list[str] = []
    quote = ""
    position = 0
    while (match := _TOKENS.search(text, position)) is not None:
        mark, position = match.group(), match.end()
        if quote:
            is_end = mark == quote or (quote == "/*" and mark == "*/")
            is_line_end = mark == "\n" and quote not in _long_quotes(grammar)
            quote = "" if is_end or is_line_end else quote
        elif _begins_comment(grammar, mark):
            position = _end_of_line(text, position)
        elif mark in _QUOTES:
            quote = mark
        elif mark in _PAIRS:
            stack.append(_PAIRS[mark])
        elif stack and mark == stack[-1]:
            stack.pop()
    return stack, quote


def _is_in_here_document(grammar: Grammar, text: str) -> bool:
    if grammar not in _HERE_DOCUMENTS:
        return False
    delimiter = None
    for line in text.split("\n"):
        if delimiter is not None and line.strip().rstrip(";") == delimiter:
            delimiter = None
        elif delimiter is None and (match := _HERE_DOCUMENT.search(line)) is not None:
            delimiter = match[1]
    return delimiter is not None


def _add_partners(grammar: Grammar, text: str, closers: str) -> str:
    """Add the parts that `try {` and `do {` need after their closing brace."""
    if not closers.startswith("}"):
        return closers
    if _TRY.search(text):
        partner = "catch (...) {}" if grammar is Grammar.CPP else "finally {}"
        return f"}} {partner}{closers[1:]}"
    return f"}} while (0);{closers[1:]}" if _DO.search(text) else closers


def _long_quotes(grammar: Grammar) -> tuple[str, ...]:
    comment = ("/*",) if grammar in _SLASH_COMMENTS or grammar is Grammar.CSS else ()
    return (*_LONG_QUOTES.get(grammar, ()), *comment)


def _begins_comment(grammar: Grammar, mark: str) -> bool:
    if mark == "#":
        return grammar in _HASH_COMMENTS
    return mark == "//" and grammar in _SLASH_COMMENTS


def _end_of_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _find_block(grammar: Grammar, text: str) -> str:
    """Return the body and end of a block opened by words, tags or indentation."""
    if grammar is Grammar.PYTHON:
        return _python_body(text)
    if grammar is Grammar.RUBY:
        return _ruby_ends(text)
    if grammar is Grammar.BASH:
        return _shell_ends(text)
    return _tag_ends(text) if grammar in (Grammar.HTML, Grammar.TSX, Grammar.JAVASCRIPT) else ""


def _python_body(text: str) -> str:
    """Return a body for the block or decorator on the last line; "" if the line needs no body."""
    line = text.rpartition("\n")[2]
    content = line.strip()
    indent = line[: len(line) - len(line.lstrip())]
    if content.startswith("@"):
        return f"\n{indent}def _(): pass"
    if not content.endswith(":"):
        return ""
    if content.startswith("match "):
        return f"\n{indent}    case _:\n{indent}        pass"
    body = f"\n{indent}    pass"
    return f"{body}\n{indent}finally:{body}" if content == "try:" else body


def _ruby_ends(text: str) -> str:
    depth = 0
    for match in _RUBY.finditer(text):
        depth += -1 if match["ends"] else 1
    return "\nend" * depth


def _shell_ends(text: str) -> str:
    stack: list[str] = []
    for match in _SHELL.finditer(text):
        keyword = match[1]
        if keyword in _SHELL_ENDS:
            stack.append(keyword)
        elif stack:
            stack.pop()
    ends = {keyword: _shell_end(text, keyword) for keyword in set(stack)}
    return "".join(ends[keyword] for keyword in reversed(stack))


def _shell_end(text: str, keyword: str) -> str:
    """Return the missing part of the last block in `text` that `keyword` opens."""
    begin, end = _SHELL_ENDS[keyword]
    is_begin_missing = not re.search(rf"\b{begin}\b", text[text.rfind(keyword) :])
    body = ":" if begin else ""  # `:` does nothing. Only the body of a `case` may be empty.
    return f"\n{begin if is_begin_missing else ''}\n{body}\n{end}"


def _tag_ends(text: str) -> str:
    stack: list[str] = []
    for closes, name, attributes in _TAG.findall(text):
        if closes:
            if stack and stack[-1] == name:
                stack.pop()
        elif not attributes.endswith("/") and name.lower() not in _VOID_TAGS:
            stack.append(name)
    return "".join(f"</{name}>" for name in reversed(stack))
