"""The completion mode that is chosen from the text around the cursor, which is at the last `|`."""

import pytest

from caret_ls.mode_choice import CompletionMode, apply_mode, choose_mode, find_lead
from tests.unit.caret_ls.contexts import context_at


@pytest.mark.parametrize(
    ("language", "text", "mode"),
    [
        # An opening line with nothing below.
        ("python", "def f():|", "block"),
        ("python", "def f():\n    |", "block"),
        ("python", "class A(B):\n    |\n\n\ndef g():\n    pass\n", "block"),
        ("python", "def f(\n    a,\n) -> int:\n    |", "block"),
        ("python", "if x:\n    |\nelse:\n    y = 1\n", "block"),
        ("python", "async def f():|\n", "block"),
        ("javascript", "function f() {|}", "block"),
        ("javascript", "function f() {\n  |\n}\n", "block"),
        ("typescript", "const f = () => {\n  |\n};\n", "block"),
        ("go", "func f() {\n\t|\n}\n", "block"),
        ("rust", "fn f() {|", "block"),
        ("java", "    void f() {\n        |\n    }\n}\n", "block"),
        ("ruby", "def f\n  |\nend\n", "block"),
        ("ruby", "xs.each do |x|\n  |", "block"),
        ("lua", "local function f()\n  |\nend\n", "block"),
        ("julia", "function f()\n  |\nend\n", "block"),
        ("shellscript", "for x in *; do\n  |\ndone\n", "block"),
        # A block that already has a body, and text that opens no block.
        ("python", "def f():|\n    return 1\n", "inline"),
        ("python", "def f():\n    |\n    return 1\n", "inline"),
        ("python", "def f():\n\n    |", "inline"),
        ("python", "x = {|", "inline"),
        ("python", "x: int = |", "inline"),
        ("python", "xs[1:|", "inline"),
        ("python", "def f(a|):", "inline"),
        ("javascript", "function f() {|\n  return 1;\n}\n", "inline"),
        ("json", '{"a": {|', "inline"),
        ("css", "a {|", "inline"),
        ("lua", "local t = {|", "inline"),
        ("lua", "f({\n  |\n})\n", "inline"),
        ("julia", "x = Dict{|", "inline"),
        ("markdown", "Note:\n|", "inline"),
        ("yaml", "key:\n  |", "inline"),
        ("ruby", "def f = 1 # end\n|", "inline"),
        # A docstring that begins at the cursor.
        ("python", 'def f():\n    """|', "docstring"),
        ("python", 'def f():\n    """|"""', "docstring"),
        ("python", 'class A:\n    r"""|', "docstring"),
        ("python", "def f():\n    '''|", "docstring"),
        ("python", '"""|\nimport os\n', "docstring"),
        ("python", '#!/usr/bin/python\n"""|', "docstring"),
        ("javascript", "/**|\nfunction f() {}\n", "docstring"),
        ("javascript", "/**|*/\nfunction f() {}\n", "docstring"),
        ("typescript", "  /**\n   * |\n   */\n  f() {}\n", "docstring"),
        ("java", "/**\n|", "docstring"),
        ("rust", "/**|", "docstring"),
        # Quotes that end a docstring or open another string, and comments.
        ("python", 'def f():\n    """Add."""|', "inline"),
        ("python", 'def f():\n    """Add.\n    """|', "inline"),
        ("python", 'x = """|', "inline"),
        ("python", 'import os\n"""|', "inline"),
        ("javascript", "/*|", "inline"),
        ("javascript", "/** Adds. */|", "inline"),
        ("python", "/**|", "inline"),
        ("", "", "inline"),
    ],
)
def test_the_mode_is_chosen_from_the_text(language: str, text: str, mode: str) -> None:
    prefix, _, suffix = text.rpartition("|")  # Ruby's own bars are before the cursor
    context = context_at("|", language=language, prefix=prefix, suffix=suffix)

    assert choose_mode(context) == mode


def test_a_chosen_mode_that_is_not_allowed_becomes_inline() -> None:
    context = context_at("def f():|")

    context_in_mode = apply_mode(context, requested=None, allowed={"inline"})

    assert (context_in_mode.mode, context_in_mode.is_mode_requested) == ("inline", False)


def test_a_requested_mode_is_kept_even_if_it_is_not_allowed() -> None:
    context = context_at("x = |")

    context_in_mode = apply_mode(context, requested=CompletionMode.BLOCK, allowed={"inline"})

    assert (context_in_mode.mode, context_in_mode.is_mode_requested) == ("block", True)


@pytest.mark.parametrize(
    ("language", "text", "lead"),
    [
        ("python", "def f():\n    |", '"""'),
        ("typescript", "|\nfunction f() {}", "/**"),
        ("python", 'def f():\n    """|', ""),
        ("json", "|", ""),
    ],
)
def test_a_requested_docstring_begins_with_its_marks(language: str, text: str, lead: str) -> None:
    context = context_at(text, language=language)

    assert find_lead(context, CompletionMode.DOCSTRING) == lead
    assert find_lead(context, CompletionMode.BLOCK) == ""
    assert find_lead(context, None) == ""
