"""The check whether a completion breaks the syntax of the file, in each language."""

from dataclasses import dataclass
from typing import Final

import pytest
from tree_sitter import Tree

from caret.foundation.parsing.grammars import Grammar
from inference.filtering.line_gate import LineChecks, LineGate
from inference.filtering.syntax_check import Parse, SyntaxChecker, make_parser


@dataclass(frozen=True, slots=True)
class Cursor:
    """A test case. The cursor is at `|` in `text`."""

    text: str
    good: tuple[str, ...]  # completions that leave the file intact, or may still be finished
    bad: tuple[str, ...]  # completions that add a syntax error


CURSORS: Final = {
    (Grammar.PYTHON, "a statement"): Cursor(
        "import os\n\n\ndef f(a):\n    b = |\n    return b\n",
        good=("os.path.join(a, 'b')", "[", "f(a,", '"""one', "a if a else (", "[c for c in a]"),
        bad=("os.path.join(a))", "a b", "= a", "f(a]", "'a", "return a"),
    ),
    (Grammar.PYTHON, "a body"): Cursor(
        "class A:\n    def f(self, a):\n        |\n\n    def g(self):\n        return 1\n",
        good=(
            "if a:",
            "try:",
            "return a",
            "for b in a:\n            yield b",
            "@property",
            "if a:\n            return 1\n        else:",
            "match a:",
            "with self.b(a) as c:",
        ),
        bad=("if a", "def (self):", "for in a:", "if a:\n            return )", "else:"),
    ),
    (Grammar.PYTHON, "the head of a function"): Cursor(
        "def f(a):\n    return a\n\n\ndef g(|\n",
        good=("a, b):", "a, b=1,", "self, *args: int) -> None:"),
        bad=("a, b)):", "a, b]:"),
    ),
    (Grammar.JAVASCRIPT, "a body"): Cursor(
        "class A {\n  f(a) {\n    |\n  }\n\n  g() { return 1; }\n}\n",
        good=("const b = a.map((c) => c + 1);", "if (a) {", "return `one", "try {", "b(", "do {"),
        bad=("const b = a.map((c) => c + 1));", "if a) {", "let let b = 1;", "}}"),
    ),
    (Grammar.TYPESCRIPT, "a body"): Cursor(
        "function f<T>(a: T[]): T {\n  |\n}\n",
        good=("const b: T = a[0];", "return a.find((c) => c)!;", "if (a.length) {", "type B = {"),
        bad=("const b: = a[0];", "return a[0]];", "if (a.length {"),
    ),
    (Grammar.TSX, "an element"): Cursor(
        "export function F({ a }: P) {\n  return (\n    <div>\n      |\n    </div>\n  );\n}\n",
        good=("<p>{a}</p>", "{a.map((b) => <b>{b}</b>)}", "<img src={a} />"),
        bad=("<p>{a}</p>}", "{a.map((b) => <b>{b}</b>}"),
    ),
    (Grammar.GO, "a body"): Cursor(
        "package a\n\nfunc f(a []int) (int, error) {\n\t|\n}\n",
        good=(
            "for _, b := range a {",
            "return a[0], nil",
            "if err := g(a); err != nil {",
            "b := a[",
        ),
        bad=("for _, b := range a)) {", "return a[0]], nil", "b :== a", "if err != nil }"),
    ),
    (Grammar.RUST, "a body"): Cursor(
        "fn f(a: &[u8]) -> Option<u8> {\n    |\n}\n",
        good=("let b = a.first()?;", "match a {", "for b in a {", "a.iter().max().copied()"),
        bad=("let b = a.first()?);", "match {}}", "let = a;"),
    ),
    (Grammar.JAVA, "a body"): Cursor(
        "class A {\n    int f(List<String> a) {\n        |\n    }\n}\n",
        good=("return a.size();", "for (String b : a) {", "if (a == null)", "try {", "int b ="),
        bad=("return a.size());", "for (String b : a {", "int int b = 1;"),
    ),
    (Grammar.C, "a body"): Cursor(
        "int f(const char *a)\n{\n\t|\n}\n",
        good=("size_t b = strlen(a);", "if (!a)", "while (*a++) {", "switch (*a) {", "return b("),
        bad=("size_t b = strlen(a));", "if (!a {", "return return 1;"),
    ),
    (Grammar.CPP, "a body"): Cursor(
        "class A {\n public:\n  int f(const std::vector<int>& a) {\n    |\n  }\n};\n",
        good=("return std::accumulate(a.begin(), a.end(), 0);", "for (auto b : a) {", "try {"),
        bad=("return a.size());", "for (auto b a)) {", "auto = a;"),
    ),
    (Grammar.CSHARP, "a body"): Cursor(
        "class A\n{\n    int F(List<int> a)\n    {\n        |\n    }\n}\n",
        good=("return a.Count;", "foreach (var b in a)", "var c = a.Where(b => b > 1);", "try {"),
        bad=("return a.Count);", "foreach (var b in a {", "var b = = 1;"),
    ),
    (Grammar.RUBY, "a body"): Cursor(
        "class A\n  def f(a)\n    |\n  end\nend\n",
        good=("a.map { |b| b + 1 }", "a.each do |b|", "if a", "case a", "return a[0]", "b(a,"),
        bad=("a.map { |b| b + 1 }}", "return a[0]]", "def (a)"),
    ),
    (Grammar.PHP, "a body"): Cursor(
        "<?php\n\nfunction f(array $a): int\n{\n    |\n}\n",
        good=("return count($a);", "foreach ($a as $b) {", "if ($a)", "$b = ["),
        bad=("return count($a));", "foreach ($a as {", "$b = = 1;"),
    ),
    (Grammar.SQL, "a statement"): Cursor(
        "SELECT 2;\n\n|\n\nSELECT 1;\n",
        good=(
            "SELECT a FROM b",
            "SELECT a\nFROM b\nWHERE a IN (1, 2);",
            "SELECT count(",
            "SELECT a,",
        ),
        bad=("SELECT a FROM b WHERE WHERE c;", "SELECT a FROM b WHERE a IN (1, 2)) ORDER BY );"),
    ),
    (Grammar.HTML, "an element"): Cursor(
        "<html>\n<body>\n<div>\n  |\n</div>\n</body>\n</html>\n",
        good=("<p>one</p>", "<ul>\n    <li>one</li>\n  </ul>", '<img src="a.png">', "text"),
        bad=("<p>one</b></p>", "</ul>"),
    ),
    (Grammar.CSS, "a rule"): Cursor(
        ".a {\n  color: red;\n  |\n}\n\n.b {\n  margin: 0;\n}\n",
        good=("padding: 1px 2px;", "padding: 1px", "background: url(a.png);", "&:hover {"),
        bad=("padding: 1px);", "}}", "padding: 1px; }"),
    ),
    (Grammar.JSON, "a member"): Cursor(
        '{\n  "a": {\n    "b": |\n  },\n  "c": 1\n}\n',
        good=("1", "[1, 2]", '{"d": null}', "[", "{"),
        bad=("1]", "[1, 2]]", "{1}", "1,,"),
    ),
    (Grammar.YAML, "a mapping"): Cursor(
        "a:\n  b: 1\n  |\nd:\n  - 1\n",
        good=("c: 2", "c:", "c: [1, 2]", "c:\n    - 1\n    - 2", "c: {e: 1}"),
        bad=("c: 1]: }", "c: 'a' b", "c: {e: 1}}"),
    ),
    (Grammar.BASH, "a body"): Cursor(
        "#!/bin/sh\nf() {\n  |\n}\nf\n",
        good=(
            'echo "$1"',
            'if [ -n "$1" ]; then',
            "for a in b; do",
            "case $1 in",
            "while true",
            "a=$(",
        ),
        bad=("echo $(date))", "if [ -n ]; then fi)"),
    ),
}
GOOD: Final = [(*key, text) for key, cursor in CURSORS.items() for text in cursor.good]
BAD: Final = [(*key, text) for key, cursor in CURSORS.items() for text in cursor.bad]


@dataclass(slots=True)
class CountingParser:
    parse: Parse
    num_calls: int = 0
    num_bytes: int = 0

    def __call__(self, text: bytes) -> Tree:
        self.num_calls += 1
        self.num_bytes += len(text)
        return self.parse(text)


def _is_valid(grammar: Grammar, place: str, completion: str) -> bool:
    prefix, suffix = CURSORS[grammar, place].text.split("|")
    syntax = SyntaxChecker(grammar, make_parser(grammar), prefix=prefix, suffix=suffix)
    return syntax.is_valid(completion)


@pytest.mark.parametrize(("grammar", "place", "completion"), GOOD)
def test_complete_or_unfinished_code_is_valid(
    grammar: Grammar, place: str, completion: str
) -> None:
    assert _is_valid(grammar, place, completion)


@pytest.mark.parametrize(("grammar", "place", "completion"), BAD)
def test_code_that_breaks_the_file_is_invalid(
    grammar: Grammar, place: str, completion: str
) -> None:
    assert not _is_valid(grammar, place, completion)


METHOD: Final = """
    def f{0}(self, a):
        if a:
            return [a, {0}]
        return self.g(a)
"""
LARGE_CLASS: Final = "class A:\n" + "".join(METHOD.format(number) for number in range(1_000))
EXCERPT_BYTES: Final = 2_000  # enough for the parsed excerpts; the whole class has about 90,000


def _check_in_large_class(completion: str) -> tuple[bool, CountingParser]:
    """Check a completion in the middle of a class of 5,000 lines."""
    return_line = LARGE_CLASS.index("        return self.g", len(LARGE_CLASS) // 2)
    parser = CountingParser(make_parser(Grammar.PYTHON))
    # The cursor is on a new line above the line with `return`.
    syntax = SyntaxChecker(
        Grammar.PYTHON,
        parser,
        prefix=LARGE_CLASS[:return_line] + "        ",
        suffix="\n" + LARGE_CLASS[return_line:],
    )
    return syntax.is_valid(completion), parser


def test_a_small_part_of_a_large_file_is_parsed_once() -> None:
    is_valid, parser = _check_in_large_class("b = a + 1")

    assert is_valid
    assert parser.num_calls == 1
    assert parser.num_bytes < EXCERPT_BYTES


def test_an_invalid_line_of_a_large_file_needs_two_short_parses() -> None:
    is_valid, parser = _check_in_large_class("b = a) + 1")

    assert not is_valid
    assert parser.num_calls == 2
    assert parser.num_bytes < EXCERPT_BYTES


def test_a_broken_file_is_parsed_with_the_completion_and_without_it() -> None:
    parser = CountingParser(make_parser(Grammar.PYTHON))
    prefix = f"{METHOD.format(0)}\ndef f(:\n    pass\n\n\ndef g(a):\n    return "
    syntax = SyntaxChecker(Grammar.PYTHON, parser, prefix=prefix, suffix="\n")

    assert syntax.is_valid("a")
    assert parser.num_calls == 2


def test_an_error_caused_by_the_excerpt_is_checked_in_a_larger_excerpt() -> None:
    # The smaller excerpt ends inside the docstring, which the parser counts as an error.
    words = "    Some words.\n" * 24
    suffix = f'\n    b: int,\n    c: int,\n) -> int:\n    """\n{words}    """\n    return b\n'
    syntax = SyntaxChecker(
        Grammar.PYTHON, make_parser(Grammar.PYTHON), prefix="def f(\n    a", suffix=suffix
    )

    assert syntax.is_valid(": int,")
    assert not syntax.is_valid(": int,]")


def test_a_broken_file_may_stay_broken() -> None:
    prefix = "def f(:\n    pass\n\n\ndef g(a):\n    return "
    syntax = SyntaxChecker(Grammar.PYTHON, make_parser(Grammar.PYTHON), prefix=prefix, suffix="\n")

    assert syntax.is_valid("a")
    assert not syntax.is_valid("a)) + 1 = [}")


def test_a_docstring_is_not_parsed_as_code() -> None:
    prefix = 'def f(a):\n    """Says, if it\'s asked (and only then'
    syntax = SyntaxChecker(
        Grammar.PYTHON, make_parser(Grammar.PYTHON), prefix=prefix, suffix='\n    what.\n    """\n'
    )

    assert syntax.is_valid("), that it isn't:")


def test_a_comment_is_not_parsed_as_code() -> None:
    prefix = "/*\n * Says, if it's asked\n" + " * and so on\n" * 50 + " * (and"
    suffix = "\n" + " * and so on\n" * 50 + " */\nint a;\n"
    syntax = SyntaxChecker(Grammar.C, make_parser(Grammar.C), prefix=prefix, suffix=suffix)

    assert syntax.is_valid(" only then)) it isn't: {")


def test_half_a_surrogate_pair_is_accepted() -> None:
    syntax = SyntaxChecker(Grammar.PYTHON, make_parser(Grammar.PYTHON), prefix="a = ", suffix="")

    assert syntax.is_valid("'\ud83d'")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_breaks_of_both_kinds_are_accepted(newline: str) -> None:
    prefix, suffix = "def f(a):\n    if a:\n        b = ", "\n        return b\n    return a\n"
    syntax = SyntaxChecker(
        Grammar.PYTHON,
        make_parser(Grammar.PYTHON),
        prefix=prefix.replace("\n", newline),
        suffix=suffix.replace("\n", newline),
    )

    assert syntax.is_valid(f"[{newline}            a,{newline}        ]")
    assert not syntax.is_valid("[a))")


def test_each_line_of_a_valid_block_is_parsed_once() -> None:
    parser = CountingParser(make_parser(Grammar.PYTHON))
    syntax = SyntaxChecker(Grammar.PYTHON, parser, prefix="def f(a):\n    ", suffix="\n")
    gate = LineGate(
        LineChecks(is_valid=syntax.is_valid, has_block_ended=syntax.has_block_ended),
        line_before="    ",
    )
    num_lines = 60

    for letter in "\n    ".join(f"a = a + {number}" for number in range(num_lines)):
        gate.feed(letter)
    gate.finish()

    assert parser.num_calls == num_lines


def test_text_that_cannot_be_parsed_is_valid() -> None:
    deep = "- " * 300  # deeper nested lists than `parse` passes to the YAML parser
    syntax = SyntaxChecker(Grammar.YAML, make_parser(Grammar.YAML), prefix=deep, suffix="\n")

    assert syntax.is_valid("a]: }")
    assert not syntax.has_block_ended("a]: }", line_start=0)


def test_a_line_that_parses_too_slowly_is_valid() -> None:
    # The C parser takes so many steps for this prefix that its parse is stopped.
    syntax = SyntaxChecker(
        Grammar.C, make_parser(Grammar.C), prefix=("a=>" * 160 + "\n") * 9, suffix="\n"
    )

    assert syntax.is_valid("]")
