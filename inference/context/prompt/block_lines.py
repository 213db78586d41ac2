"""Recognizes lines that open, continue and close blocks, with and without a grammar."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePath
from typing import Final

from caret.foundation.parsing.grammars import grammar_of

_MAX_CHARS: Final = 200  # searched at each end of a line
# Lines that continue on the next line: after an operator, or after the condition of a statement.
_OPERATOR: Final = re.compile(
    r"(?:%>%|\|>|&&|\|\||<-|[^=!<>]=|[^+]\+|\\)\s*$"
    r"|^\s*(?:\}?\s*else\s+)?(?:if|for|while)\s*\(.*\)\s*$"
)
# Lines that open a block. _BRACKET applies to all languages except _TEXTS; the other expressions
# apply to the languages in _BY_LANGUAGE.
_COLON: Final = r":\s*(?:#.*)?$"  # `if x:  # why`
_BRACKET: Final = r"(?:[{(\[]|=>|->)\s*$|^\s*/\*\*?\s*$"  # or a comment's first line
_LABEL: Final = r"^\s*(?:case\b.*|default|default\s*->):\s*$"  # `case 1:`
_TAG: Final = (  # `<div class="a">`, but not the tags that have no end tag
    r"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|wbr)\b)[A-Za-z][^<>/]*>\s*$"
)
# `{% if x %}`
_TEMPLATE: Final = r"\{%-?\s*(?:if|for|block|macro|with|call|filter|el\w+)\b[^{}]*%\}\s*$"
_HERE_DOCUMENT: Final = r"<<[-~]?[\"']?[A-Za-z_]\w*[\"']?\s*$"  # `cat <<TEXT`
_C_LABEL: Final = r"^\s*\w+:\s*$"  # `public:`
_FENCE: Final = r"^\s*```\s*[\w+-]+\s*$"  # "```python"
_SHELL: Final = r"\b(?:do|then|else|in)\s*$|^\s*[^\s()]+\)\s*$"  # or a pattern of `case`: `*.py)`
_ENDED_BY_WORD: Final = (  # such a block ends with a word, usually `end`
    r"\b(?:do|then|else|repeat|begin|ensure)(?:\s*\|[^|]*\|)?\s*$"
    r"|^\s*(?:def|class|module|if|unless|while|until|case|for|elsif|elseif|when|rescue|struct|"
    r"mutable struct|function|macro|let|try|quote)\b(?!.*\b(?:end|then\s+\S.*)\b)"
)
# `let x =`, `match x with`
_ASSIGNMENT: Final = r"(?:[^=!<>]=|\b(?:do|of|where|then|else|with|let))\s*$"
_FUNCTION: Final = r"\bfunction\b[\w\s.:]*\([^()]*\)\s*$"  # `function f(x)`
_BY_LANGUAGE: Final = {
    "python": (_COLON,),
    "yaml": (_COLON, r"[|>][-+]?\s*$"),
    "ruby": (_ENDED_BY_WORD, _HERE_DOCUMENT),
    "julia": (_ENDED_BY_WORD, r"\bdo\b[\w\s(),]*$"),
    "elixir": (r"\bdo\s*$|\belse\s*$",),
    "lua": (r"\b(?:do|then|else|repeat)\s*$", _FUNCTION),
    "bash": (_SHELL, _HERE_DOCUMENT),
    "fsharp": (_ASSIGNMENT,),
    "ocaml": (_ASSIGNMENT,),
    "nim": (_ASSIGNMENT, _COLON),
    "haskell": (_ASSIGNMENT, r"^\s*then\b(?!.*\belse\b)"),
    "scala": (_ASSIGNMENT,),
    "rust": (_LABEL, r"^\s*where\s*$"),
    "php": (_LABEL, r"<\?php\s+(?:if|for|foreach|while|else|elseif)\b.*:\s*\?>\s*$"),
    "latex": (r"\\begin\{[^{}]*\}[^{}]*$",),
    "svelte": (_TAG, r"\{[#:][^{}]*\}\s*$"),
    "markdown": (_FENCE,),
    "csv": (),
    **dict.fromkeys(("c", "cpp"), (_LABEL, _C_LABEL)),
    **dict.fromkeys(("gdscript", "makefile", "starlark"), (_COLON,)),
    **dict.fromkeys(("html", "tsx", "vue", "xml", "astro", "blade", "erb"), (_TAG, _TEMPLATE)),
    **dict.fromkeys(("jinja", "jinja-html", "django-html", "liquid", "twig"), (_TAG, _TEMPLATE)),
}
_DEFAULT_PATTERNS: Final = (_LABEL,)  # of all other languages
_TEXTS: Final = frozenset({"csv", "markdown", "plaintext"})  # brackets open no blocks in these
# In these languages the brace of a definition may stand on a line of its own. The line above it is
# the head of the block, such as `int main()`.
_LONE_BRACE: Final = frozenset({"c", "cpp", "csharp", "java", "php", "rust", "solidity"})
_HEAD_WITHOUT_BRACE: Final = re.compile(  # `int main()`, `struct Point`
    r"(?:\)(?:\s*\w+)*|=>|^\s*\w+)\s*$"
    r"|^\s*(?:[\w\s]+\s)?(?:class|struct|enum|interface|namespace|union)\s"
)
_STATEMENT_ENDS: Final = (";", "{", "}", ":")  # no block begins after these
# In these languages all lines of a definition belong together until its bracket closes.
_LISPS: Final = frozenset({"clojure", "commonlisp", "lisp", "racket", "scheme"})
# Beginnings of lines that continue a block, in one language each. Such a line has the indentation
# of the line that opens the block.
_OWN_BRANCHES: Final = {
    "fsharp": re.compile(r"\|(?:\s|$)"),
    "lua": re.compile(r"until\b"),
    "ocaml": re.compile(r"\|(?:\s|$)"),
    "yaml": re.compile(r"-(?:\s|$)"),
}
# In these languages a block ends with a line such as `end`, not with a bracket.
_ENDED_BY_LINE: Final = frozenset(
    {
        *("bash", "elixir", "julia", "latex", "lua", "ruby"),
        *("html", "jinja", "jinja-html", "django-html", "liquid", "svelte", "twig", "vue", "xml"),
    }
)
# In these languages a line ends with a comma only if its statement continues.
_STYLE_SHEETS: Final = frozenset({"css", "less", "scss"})
# In these languages a line with less indentation is the next statement of an outer block.
_INDENTED: Final = frozenset({"fsharp", "gdscript", "haskell", "nim", "python", "starlark", "yaml"})
_WITH_LABELS: Final = frozenset({"c", "cpp"})  # a line `name:` is a label
_ITEM_WITH_KEY: Final = re.compile(r"\s*-\s+[\w.\"'/-]+:(?:\s|$)")  # `- name: x`
# Beginnings of lines that end a block, and of lines that continue a block with a branch.
_END_MARKS: Final = ("end", "fi", "done", "esac", "</", "{/", "\\end{", "```")
_BRANCH_WORDS: Final = (
    *("else", "elif", "elsif", "elseif", "except", "rescue", "ensure", "finally", "catch"),
    *("case", "when", "default"),
)
_TEMPLATE_MARKS: Final = tuple(
    f"{begin} {word}"
    for begin in ("{%", "{%-", "<?php")
    for word in ("end", "else", "elif", "elsif", "elseif")
)
# The same marks as expressions, which match only whole words.
_END: Final = re.compile(r"(?:end|fi|done|esac)\b|</|\{/|\\end\{|```\s*$|(?:\{%-?|<\?php) end")
_BRANCH: Final = re.compile(rf"(?:(?:\{{%-?|<\?php) )?(?:{'|'.join(_BRANCH_WORDS)})\b|\{{:")
_LAST_BRANCH: Final = re.compile(
    r"(?:(?:\{%-?|<\?php) |\{:)?(?:else(?!\s*if)|default|ensure|finally)\b"
)
_MARKS: Final = (*_END_MARKS, *_BRANCH_WORDS, "{:", *_TEMPLATE_MARKS, "until")
# Languages without a grammar, for clients that send a path only.
_BY_SUFFIX: Final = {
    ".clj": "clojure",
    ".csv": "csv",
    ".ex": "elixir",
    ".exs": "elixir",
    ".fs": "fsharp",
    ".hs": "haskell",
    ".j2": "jinja",
    ".jl": "julia",
    ".less": "less",
    ".lua": "lua",
    ".md": "markdown",
    ".mk": "makefile",
    ".ml": "ocaml",
    ".nim": "nim",
    ".scala": "scala",
    ".scss": "scss",
    ".sol": "solidity",
    ".svelte": "svelte",
    ".tex": "latex",
    ".vue": "vue",
    ".xml": "xml",
}


class BlockLines:
    """Recognizes the lines of one language."""

    def __init__(self, language: str, path: str) -> None:
        # The name of a grammar, or of a language without a grammar.
        name = grammar_of(language, path) or language.lower() or _find_language(path)
        patterns = _BY_LANGUAGE.get(name, _DEFAULT_PATTERNS)
        self._opens = _compile(patterns if name in _TEXTS else (_BRACKET, *patterns))
        self._has_labels = name in _WITH_LABELS
        self._own_branch = _OWN_BRANCHES.get(name)
        self._has_items = name == "yaml"
        self._continues_after_comma = name in _STYLE_SHEETS
        self.is_indented = name in _INDENTED
        self.is_ended_by_line = name in _ENDED_BY_LINE
        self.is_text = name in _TEXTS
        self.is_lisp = name in _LISPS
        self._has_lone_braces = name in _LONE_BRACE

    def is_opening(self, line: str) -> bool:
        """Return whether the line opens a block."""
        return self._opens.search(_clip(line)) is not None

    def is_unfinished(self, line: str) -> bool:
        """Return whether the line opens a block or continues on the next line.

        The second reason does not apply to texts such as Markdown.
        """
        line = _clip(line)
        is_opening = self._opens.search(line) is not None
        if is_opening or self.is_text:
            return is_opening
        if self._continues_after_comma and line.rstrip().endswith(","):
            return True
        return _has_open_bracket(line) or _OPERATOR.search(line) is not None

    def is_continued(self, line: str) -> bool:
        """Return whether an unfinished line continues without opening a block or a bracket."""
        line = _clip(line)
        return not (self.is_opening(line) or _has_open_bracket(line))

    def is_branch(self, line: str) -> bool:
        """Return whether the line continues the block above with a branch, such as `else`.

        Such a line has the indentation of the line that opens the block.
        """
        content = line.lstrip()
        own_branch = self._own_branch
        return _BRANCH.match(content) is not None or (
            own_branch is not None and own_branch.match(content) is not None
        )

    def has_lone_brace(self, head: str) -> bool:
        """Return whether the block of `head` probably begins with a lone brace on the next line."""
        return self._has_lone_braces and _HEAD_WITHOUT_BRACE.search(head[-_MAX_CHARS:]) is not None

    def may_have_lone_brace(self, head: str) -> bool:
        """Return whether a lone brace on the next line would begin the block of `head`."""
        return self._has_lone_braces and not head.rstrip().endswith(_STATEMENT_ENDS)

    def can_become_branch(self, beginning: str) -> bool:
        """Return whether a line with this beginning may become a branch or a label."""
        return self.is_branch(beginning) or self._is_name(beginning.strip().removesuffix(":"))

    def is_label(self, line: str) -> bool:
        """Return whether the line is a label or an access specifier of C or C++."""
        name, colon, after_colon = line.strip().partition(":")
        return bool(colon) and not after_colon and self._is_name(name)

    def _is_name(self, text: str) -> bool:
        return self._has_labels and text.isidentifier()

    def is_item_with_key(self, line: str) -> bool:
        """Return whether the line begins a list item of YAML that may have further keys."""
        return self._has_items and _ITEM_WITH_KEY.match(line) is not None


def _find_language(path: str) -> str:
    return _BY_SUFFIX.get(PurePath(path).suffix.lower(), "")


@lru_cache
def _compile(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(patterns) or r"(?!)")  # `(?!)` matches nothing


def has_flat_body(line: str) -> bool:
    """Return whether the line opens a block whose body may stand without indentation."""
    return re.match(r"\s*(?:(?:inline\s+)?namespace\b|```)", line) is not None


def can_become_end(beginning: str) -> bool:
    """Return whether a line with this beginning may become the end or a branch of a block.

    `beginning` is the line's text so far, without its indentation.
    """
    return any(mark.startswith(beginning) for mark in _MARKS)


def is_end(line: str) -> bool:
    """Return whether the line closes a block with a word, a tag or a mark, but not a bracket."""
    return _END.match(line.lstrip()) is not None


def is_last_branch(line: str) -> bool:
    """Return whether the line is the last branch of a block.

    Only a branch that always runs, such as `finally`, may follow.
    """
    return _LAST_BRANCH.match(line.lstrip()) is not None


def has_block(prefix: str, indent: int) -> bool:
    """Return whether a block with this indentation may be open at the cursor.

    `prefix` is searched upwards, from the cursor's line. The first line that is not indented more
    than `indent` must have exactly this indentation and must not end a block.
    """
    opening = _find_next_outside(reversed(prefix.split("\n")), indent)
    return opening is not None and measure_indent(opening) == indent and not is_end(opening)


def is_end_missing(prefix: str, suffix: str, indent: int) -> bool:
    """Return whether a block with this indentation may be open, and `suffix` does not end it.

    `suffix` begins at the end of the cursor's line.
    """
    if not has_block(prefix, indent):
        return False
    below = _find_next_outside(iter(suffix.split("\n")), indent)
    return below is None or measure_indent(below) != indent or not is_end(below)


def measure_statement_indent(prefix: str) -> int:
    """Return the indentation of the statement on the cursor's line.

    If this line closes brackets of lines above, the statement begins at the line that opens them.
    """
    last_line = prefix[prefix.rfind("\n") + 1 :]
    num_closed = -_count_open_brackets(last_line)
    if num_closed <= 0:
        return measure_indent(last_line)
    for line in reversed(prefix[: -len(last_line) - 1].split("\n")):
        num_closed -= _count_open_brackets(line)
        if num_closed <= 0:
            return measure_indent(line)
    return measure_indent(last_line)


def find_outside(suffix: str, indent: int) -> str:
    """Return the first line that is not blank and not indented more than `indent`; "" if none.

    `suffix` begins at the end of the cursor's line.
    """
    return _find_next_outside(iter(suffix.split("\n")), indent) or ""


def _find_next_outside(lines: Iterable[str], indent: int) -> str | None:
    """Return the first line that is not blank and not indented more than `indent`."""
    return next((line for line in lines if line.strip() and measure_indent(line) <= indent), None)


def _clip(line: str) -> str:
    """Return both ends of a long line: the patterns would take too long for the whole line."""
    return line if len(line) <= 2 * _MAX_CHARS else line[:_MAX_CHARS] + line[-_MAX_CHARS:]


def has_open_parenthesis(line: str) -> bool:
    """Return whether the line opens more parentheses and square brackets than it closes."""
    return sum(map(line.count, "([")) > sum(map(line.count, ")]"))


def _has_open_bracket(line: str) -> bool:
    return _count_open_brackets(line) > 0


def _count_open_brackets(line: str) -> int:
    """Return opened minus closed brackets."""
    return sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))


def measure_indent(line: str) -> int:
    """Return the number of characters before the first one that is not blank."""
    return len(line) - len(line.lstrip())
