"""Docstrings of each language: the marks around them, and their place at a function. Pure.

Functions are recognised by regular expressions, without a grammar. If a function is not recognised,
no docstring can be written for it. In this module, a class or another type is also a function.
"""

import re
from dataclasses import dataclass
from typing import Final

from caret_ls.completion_context import CompletionContext

# Languages whose docstrings are comments that begin with /** and end with */.
_STAR_LANGUAGES: Final = frozenset(
    (
        *("c", "cpp", "c++", "objective-c", "java", "kotlin", "scala", "dart", "groovy", "php"),
        *("javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte"),
        *("swift", "csharp", "c#", "rust", "go", "solidity"),
    )
)
# A part of a line before the cursor that has only opening quotes, only `/**`, or at most a `*`.
_QUOTES_OPEN: Final = re.compile(r"""^\s*[rRuU]?(\"{3}|'{3})\s*$""")
_STARS_OPEN: Final = re.compile(r"^\s*/\*\*\s*$")
_STARS_CONTINUED: Final = re.compile(r"^\s*\*?\s*$")
_COLON: Final = re.compile(r":\s*(?:#.*)?$")
# A head is the first line of a function. The first group is its indentation.
_PYTHON_HEAD: Final = re.compile(r"^(\s*)(?:async\s+)?(?:def|class)\s+\w+")
_STARS_HEAD: Final = re.compile(
    r"""^(\s*)(?:
        # JavaScript and similar: export async function area(...
        (?:export\s+|default\s+|declare\s+|async\s+)*(?:function\*?|class|interface|trait|enum)\b
        # Rust: pub(crate) fn area(...
        | (?:pub(?:\([\w:]+\))?\s+|unsafe\s+|async\s+|extern\s+|const\s+)*(?:fn|struct|impl)\b
        # Go and Swift: func (shape Shape) Area(...
        | func\s+(?:\([^)]*\)\s*)?\w+
        # JavaScript: const area = (shape) =>
        | (?:export\s+)?(?:const|let|var)\s+\w+[^=]*=\s*(?:async\s*)?(?:\([^)]*\)|\w+)[^=]*=>
        # Kotlin: override fun area(...
        | (?:override\s+|suspend\s+|private\s+|public\s+|internal\s+)*fun\s
        # C, C++, Java, C#, and methods in JavaScript: static int area(Shape shape) {
        | (?!(?:if|for|while|switch|catch|return|else|do|new|throw|await)\b)
          (?:[\w<>\[\],.?:&*]+\s+)*[*&]?[\w$~]+\s*\([^;]*\)?[^;=]*\{\s*$
    )""",
    re.VERBOSE,
)
_MAX_HEAD_LINES: Final = 20  # in Python, from the head to the colon that ends the signature


@dataclass(frozen=True, slots=True)
class DocstringPlace:
    """The place between two lines where a docstring is to be written."""

    line: int  # the docstring is inserted before this line, which counts from 0
    opening: str  # the docstring's indentation and its opening marks
    has_docstring: bool  # the function already has a docstring


def docstring_opener(language: str) -> str:
    """Return the marks that open a docstring; "" if Caret does not know them for the language."""
    if language.lower() == "python":
        return '"""'
    return "/**" if language.lower() in _STAR_LANGUAGES else ""


def is_docstring_opened(context: CompletionContext) -> bool:
    """Return whether the cursor is in a docstring that has opening marks and no text yet."""
    if context.line_after.strip("\"'*/ \t"):
        return False
    before = context.line_before
    above = context.prefix[: len(context.prefix) - len(before)].rstrip("\r\n").splitlines()
    if context.language.lower() == "python":
        return bool(_QUOTES_OPEN.match(before)) and _may_begin_docstring(above)
    if context.language.lower() not in _STAR_LANGUAGES:
        return False
    last = above[-1] if above else ""
    return bool(_STARS_OPEN.match(before)) or (
        bool(_STARS_CONTINUED.match(before)) and bool(_STARS_OPEN.match(last))
    )


def find_docstring_place(language: str, lines: list[str], line: int) -> DocstringPlace | None:
    """Return the place for the docstring of the function around a line, which counts from 0.

    None: Caret does not know the language's docstrings, or there is no function.
    """
    opener = docstring_opener(language)
    if not opener:
        return None
    is_below_head = opener == '"""'
    head = _PYTHON_HEAD if is_below_head else _STARS_HEAD
    line_and_indent = _find_head(lines, min(line, len(lines) - 1), head)
    if line_and_indent is None:
        return None
    index, indent = line_and_indent
    if is_below_head:
        return _place_below(lines, index, indent)
    above = lines[index - 1].strip() if index else ""
    return DocstringPlace(index, f"{indent}{opener}", has_docstring=above.endswith("*/"))


def _may_begin_docstring(above: list[str]) -> bool:
    """Return whether quotes below these lines open a docstring.

    They do so below a line that ends with a colon, or if only comments and blank lines are above.
    Elsewhere they may end a docstring.
    """
    line = next((line for line in reversed(above) if line.strip()), "")
    if _COLON.search(line) is not None:
        return True
    return all(not line.strip() or line.lstrip().startswith("#") for line in above)


def _find_head(lines: list[str], line: int, head: re.Pattern[str]) -> tuple[int, str] | None:
    """Return line and indentation of the nearest function that begins at the line or contains it.

    A function above contains the line if no line in between has less or the same indentation.
    """
    min_indent = None  # of the lines below
    for index in range(line, -1, -1):
        text = lines[index]
        if not text.strip():
            continue
        match = head.match(text)
        if match and (min_indent is None or len(match[1]) < min_indent):
            return index, match[1]
        # A line that begins with `)` continues a head of the same indentation, so it counts as
        # deeper. So does a `}` or `]` where the search begins, because it ends the function around
        # it. Further up, it ends another function.
        is_inside = text.lstrip().startswith(")") or (
            min_indent is None and text.strip()[0] in "}]"
        )
        indent = _indent(text) + (1 if is_inside else 0)
        min_indent = indent if min_indent is None else min(min_indent, indent)
    return None


def _place_below(lines: list[str], index: int, indent: str) -> DocstringPlace | None:
    """Return the place below the signature, which may have several lines and ends with a colon.

    None: the colon was not found.
    """
    for end in range(index, min(index + _MAX_HEAD_LINES, len(lines))):
        if _COLON.search(lines[end]):
            below = next((line for line in lines[end + 1 :] if line.strip()), "")
            is_deeper = _indent(below) > len(indent)
            inner = below[: _indent(below)] if is_deeper else f"{indent}    "
            has_docstring = is_deeper and below.lstrip("rRuU \t").startswith(('"""', "'''"))
            return DocstringPlace(end + 1, f'{inner}"""', has_docstring=has_docstring)
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
