"""The choice between a single line and a block, for completions in the mode inline."""

import pytest

from caret.contracts.policy import Mode
from inference.context.prompt.line_or_block import is_single_line
from tests.fakes.requests import make_request

# Language and text. The last | marks the cursor.
BLOCKS = [
    ("python", "def f(a):|\n"),
    ("python", "def f(a):\n    |\n"),
    ("python", "if a:  # why\n    |\n"),
    ("python", "a = [\n    |\n]\n"),
    ("python", "a = 1\n\n|\n"),
    ("python", "# Adds one.\n|\n"),
    ("python", "@property\n|\n"),
    ("python", 'def f():\n    """Says."""\n    |\n'),
    ("python", "|"),
    ("javascript", "function f(a) {|\n"),
    ("javascript", "const f = (a) =>|\n"),
    ("typescript", "interface A {\n  |\n}\n"),
    ("typescriptreact", "return (\n  <div>\n    |\n  </div>\n);\n"),
    ("go", "for {\n\t|\n}\n"),
    ("rust", "match a {\n    |\n}\n"),
    ("java", "class A {|\n"),
    ("c", "int f(void)\n{\n\t|\n}\n"),
    ("cpp", "namespace a {\n|\n}\n"),
    ("csharp", "if (a)\n{\n    |\n}\n"),
    ("ruby", "a.each do |b|\n  |"),
    ("ruby", "def f(a)|\n"),
    ("php", "<?php\nif ($a) {\n    |\n}\n"),
    ("sql", "SELECT 1;\n\n|"),
    ("html", "<ul>\n  |\n</ul>\n"),
    ("css", ".a {\n  |\n}\n"),
    ("json", '{\n  "a": [\n    |\n  ]\n}\n'),
    ("yaml", "a:\n  |\n"),
    ("shellscript", "if a; then|\n"),
    ("kotlin", "fun f() {\n    |\n}\n"),
]
LINES = [
    ("python", "a = |\n"),
    ("python", "f(a, |)\n"),
    ("python", "def f(a|):\n    pass\n"),
    ("python", "a = 1\n|\n"),
    ("python", "def f():\n    a = 1\n    |\n"),
    ("javascript", "f(a);\n|\n"),
    ("ruby", "a = b if c|\n"),
    ("ruby", "x = 1\n|\n"),
    ("css", ".a {\n  color: red;\n  |\n}\n"),
    ("html", "<p>a</p>\n|\n"),
    ("yaml", "a: 1\n|\n"),
    ("shellscript", "echo a\n|\n"),
]


def _is_single_line(language: str, text: str, mode: Mode = Mode.INLINE) -> bool:
    prefix, _, suffix = text.rpartition("|")
    return is_single_line(
        make_request(language=language, prefix=prefix, suffix=suffix, mode=mode, path="")
    )


@pytest.mark.parametrize(("language", "text"), BLOCKS)
def test_a_completion_at_the_beginning_of_a_block_or_paragraph_is_a_block(
    language: str, text: str
) -> None:
    assert not _is_single_line(language, text)


@pytest.mark.parametrize(("language", "text"), LINES)
def test_other_inline_completions_are_single_lines(language: str, text: str) -> None:
    assert _is_single_line(language, text)


@pytest.mark.parametrize("mode", [Mode.FIM, Mode.BLOCK, Mode.DOCSTRING])
def test_completions_in_other_modes_are_not_single_lines(mode: Mode) -> None:
    assert not _is_single_line("python", "a = |\n", mode)
