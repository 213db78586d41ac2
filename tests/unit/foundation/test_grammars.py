"""The grammars, and the selection of a file's grammar by its language or its name."""

import pytest

from caret.foundation.parsing.grammars import Grammar, grammar_of
from caret.foundation.parsing.parse import ParseBudget, parse

TEXTS = {
    Grammar.BASH: "for a in b; do\n  echo $a\ndone\n",
    Grammar.C: "int f(int a) {\n  return a;\n}\n",
    Grammar.CPP: "class A {\n public:\n  int b;\n};\n",
    Grammar.CSHARP: "class A { int B() => 1; }\n",
    Grammar.CSS: "a { color: red; }\n",
    Grammar.GO: "package a\n\nfunc f() int { return 1 }\n",
    Grammar.HTML: "<p>a <b>c</b></p>\n",
    Grammar.JAVA: "class A { int b() { return 1; } }\n",
    Grammar.JAVASCRIPT: "const a = (b) => <c>{b}</c>;\n",
    Grammar.JSON: '{"a": [1, 2]}\n',
    Grammar.PHP: "<?php\nfunction f($a) { return $a; }\n",
    Grammar.PYTHON: "def f(a: int) -> int:\n    return a\n",
    Grammar.RUBY: "def f(a)\n  a\nend\n",
    Grammar.RUST: "fn f(a: u8) -> u8 { a }\n",
    Grammar.SQL: "SELECT a FROM b WHERE c = 1;\n",
    Grammar.TSX: "const a = (b: string) => <c>{b}</c>;\n",
    Grammar.TYPESCRIPT: "function f<T>(a: T): T { return a; }\n",
    Grammar.YAML: "a:\n  - b: c\n",
}


@pytest.mark.parametrize("grammar", Grammar)
def test_each_grammar_parses_its_language(grammar: Grammar) -> None:
    tree = parse(grammar, TEXTS[grammar].encode(), ParseBudget(total_s=1.0))

    assert not tree.root_node.has_error


@pytest.mark.parametrize(
    ("language", "path", "grammar"),
    [
        ("python", "", Grammar.PYTHON),
        ("C#", "", Grammar.CSHARP),
        ("shellscript", "", Grammar.BASH),
        ("typescriptreact", "a.ts", Grammar.TSX),
        ("", "src/A.TS", Grammar.TYPESCRIPT),
        ("", "include/a.h", Grammar.CPP),
        ("", "Makefile", None),
        ("", "", None),
        ("kotlin", "", None),
    ],
)
def test_the_grammar_is_selected_by_the_language_or_else_by_the_file_name(
    language: str, path: str, grammar: Grammar | None
) -> None:
    assert grammar_of(language, path) is grammar


def test_the_file_name_is_ignored_if_the_language_has_no_grammar() -> None:
    assert grammar_of("markdown", "a.py") is None
