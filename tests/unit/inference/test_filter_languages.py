"""The whole filter, in each language.

The filter ends a completion where its block ends, does not repeat the suffix, and drops invalid
lines at the end.
"""

from dataclasses import dataclass
from typing import Final

import pytest

from caret.contracts.policy import Mode
from inference.filtering.filter import filter
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.pools import make_engine_request
from tests.fakes.requests import make_admitted, make_prompt, make_trace


@dataclass(frozen=True, slots=True)
class Case:
    """A test case. The cursor is at `|` in `text`."""

    language: str
    text: str
    engine_text: str
    shown_text: str


# The block ends; the engine's further text is dropped.
ENDS: Final = [
    Case(
        "python",
        "def f(a):\n    |\n\n\ndef h():\n    pass\n",
        "if a:\n        return 1\n    return 2\n\n\ndef g():\n    pass\n",
        "if a:\n        return 1\n    return 2",
    ),
    Case(
        "python",
        "import os\n\n\n|",
        "def f(a):\n    return a\n\n\ndef g(a):\n    return a\n",
        "def f(a):\n    return a",
    ),
    Case(
        "python",
        'def f():\n    """Says.\n    """\n    |\n',
        'a = """\none\n  two\n"""\n    return a\nb = 1\n',
        'a = """\none\n  two\n"""\n    return a',
    ),
    Case(
        "javascript",
        "function f(a) {\n  |\n}\n\nf(1);\n",
        "if (a) {\n    return 1;\n  }\n  return 2;\n}\n\nfunction g() {}\n",
        "if (a) {\n    return 1;\n  }\n  return 2;",
    ),
    Case(
        "javascript",
        "|\n",
        "function f(a) {\n  return a;\n}\nfunction g(a) {\n  return a;\n}\n",
        "function f(a) {\n  return a;\n}",
    ),
    Case(
        "typescript",
        "interface A {\n  |\n}\n",
        "a: string;\n  b(): number;\n}\n\ninterface B {}\n",
        "a: string;\n  b(): number;",
    ),
    Case(
        "typescriptreact",
        "const F = () => (\n  <div>\n    |\n  </div>\n);\n",
        "<p>one</p>\n    <p>two</p>\n  </div>\n);\n",
        "<p>one</p>\n    <p>two</p>",
    ),
    Case(
        "go",
        "package a\n\nfunc f(a int) int {\n\t|\n}\n",
        "if a > 1 {\n\t\treturn a\n\t}\n\treturn 0\n}\n\nfunc g() {}\n",
        "if a > 1 {\n\t\treturn a\n\t}\n\treturn 0",
    ),
    Case(
        "rust",
        "fn f(a: u8) -> u8 {\n    |\n}\n",
        "match a {\n        0 => 1,\n        _ => a,\n    }\n}\n\nfn g() {}\n",
        "match a {\n        0 => 1,\n        _ => a,\n    }",
    ),
    Case(
        "java",
        "class A {\n    int f(int a) {\n        |\n    }\n}\n",
        "for (int b : c) {\n            a += b;\n        }\n        return a;\n    }\n    int g;\n",
        "for (int b : c) {\n            a += b;\n        }\n        return a;",
    ),
    Case(
        "c",
        "int f(int a)\n{\n\t|\n}\n",
        "#ifdef B\n\ta++;\n#endif\n\treturn a;\n}\n\nint g(void) {}\n",
        "#ifdef B\n\ta++;\n#endif\n\treturn a;",
    ),
    Case(
        "cpp",
        "int f(std::vector<int> a) {\n  |\n}\n",
        "for (auto b : a) {\n    g(b);\n  }\n  return 0;\n}\n\nint h() {}\n",
        "for (auto b : a) {\n    g(b);\n  }\n  return 0;",
    ),
    Case(
        "csharp",
        "class A\n{\n    int F(int a)\n    {\n        |\n    }\n}\n",
        "if (a > 1)\n        {\n            return a;\n        }\n        return 0;\n    }\n",
        "if (a > 1)\n        {\n            return a;\n        }\n        return 0;",
    ),
    Case(
        "ruby",
        "class A\n  def f(a)\n    |\n  end\nend\n",
        "a.each do |b|\n      c(b)\n    end\n    a\n  end\n\n  def g\n",
        "a.each do |b|\n      c(b)\n    end\n    a",
    ),
    Case(
        "php",
        "<?php\n\nfunction f($a)\n{\n    |\n}\n",
        "foreach ($a as $b) {\n        g($b);\n    }\n    return $a;\n}\n\nfunction h() {}\n",
        "foreach ($a as $b) {\n        g($b);\n    }\n    return $a;",
    ),
    Case(
        "sql",
        "|\n",
        "SELECT a,\n  b\nFROM c\nWHERE a = 1;\nSELECT 2;\n",
        "SELECT a,\n  b\nFROM c\nWHERE a = 1;",
    ),
    Case(
        "html",
        "<body>\n  <ul>\n    |\n  </ul>\n</body>\n",
        "<li>one</li>\n    <li>two</li>\n  </ul>\n  <p>three</p>\n",
        "<li>one</li>\n    <li>two</li>",
    ),
    Case(
        "css",
        ".a {\n  |\n}\n",
        "color: red;\n  margin: 0;\n}\n\n.b {\n",
        "color: red;\n  margin: 0;",
    ),
    Case(
        "json",
        '{\n  "a": {\n    |\n  }\n}\n',
        '"b": 1,\n    "c": [1, 2]\n  },\n  "d": 2\n',
        '"b": 1,\n    "c": [1, 2]',
    ),
    Case(
        "yaml",
        "a:\n  b:\n    |\nc: 1\n",
        "- one\n    - two\n  d: 1\ne: 2\n",
        "- one\n    - two",
    ),
    Case(
        "shellscript",
        "f() {\n  |\n}\n",
        "cat <<EOF\none\nEOF\n  if a; then\n    b\n  fi\n}\n\ng() {\n",
        "cat <<EOF\none\nEOF\n  if a; then\n    b\n  fi",
    ),
]
# A closing bracket after the cursor is not written again.
CLOSERS: Final = [
    Case("python", "f(|)\n", "a, b)", "a, b"),
    Case("javascript", "f([|]);\n", "a, b]);", "a, b"),
    Case("typescript", "const a: A[] = [|];\n", "b, c];", "b, c"),
    Case("typescriptreact", "const a = <b c={|} />;\n", "d} />;", "d"),
    Case("go", "func f() {\n\tg(|)\n}\n", "a, b)", "a, b"),
    Case("rust", "fn f() {\n    g(|);\n}\n", "a, b);", "a, b"),
    Case("java", "class A { int f() { return g(|); } }\n", "a, b); } }", "a, b"),
    Case("c", "int f() { return g(|); }\n", "a, b); }", "a, b"),
    Case("cpp", "int f() { return g<a>(|); }\n", "b, c); }", "b, c"),
    Case("csharp", "class A { int F() { return G(|); } }\n", "a, b); } }", "a, b"),
    Case("ruby", "f(|)\n", "a, b)", "a, b"),
    Case("php", "<?php\nf(|);\n", "$a, $b);", "$a, $b"),
    Case("sql", "SELECT count(|) FROM a;\n", "b) FROM a;", "b"),
    Case("html", '<a href="|">b</a>\n', 'c.html">b</a>', "c.html"),
    Case("css", "a { color: rgb(|); }\n", "0, 0, 0); }", "0, 0, 0"),
    Case("json", '{"a": [|]}\n', "1, 2]}", "1, 2"),
    Case("yaml", "a: [|]\n", "b, c]", "b, c"),
    Case("shellscript", "a=$(|)\n", "b c)", "b c"),
]
# Lines after the last one that leaves the file intact are dropped.
BROKEN: Final = [
    Case("python", "def f(a):\n    |\n", "b = a\n    c = b)\n    d = (", "b = a"),
    Case("javascript", "function f(a) {\n  |\n}\n", "b(a);\n  c(b]);\n  d(", "b(a);"),
    Case("typescript", "function f(a: A) {\n  |\n}\n", "b(a);\n  let c: = 1;", "b(a);"),
    Case("go", "package a\n\nfunc f(a int) {\n\t|\n}\n", "b(a)\n\tc(b]\n", "b(a)"),
    Case("rust", "fn f(a: u8) {\n    |\n}\n", "b(a);\n    c(b];\n", "b(a);"),
    Case("java", "class A {\n  void f() {\n    |\n  }\n}\n", "a();\n    b(c];\n", "a();"),
    Case("c", "void f(void)\n{\n\t|\n}\n", "a();\n\tb(c];\n", "a();"),
    Case("cpp", "void f() {\n  |\n}\n", "a();\n  b(c];\n", "a();"),
    Case("csharp", "class A\n{\n  void F()\n  {\n    |\n  }\n}\n", "A();\n    B(c];\n", "A();"),
    Case("ruby", "def f(a)\n  |\nend\n", "b(a)\n  c(b]\n", "b(a)"),
    Case("php", "<?php\nfunction f() {\n  |\n}\n", "a();\n  b(c];\n", "a();"),
    Case("sql", "|\n", "SELECT 1;\nSELECT a FROM b WHERE WHERE c));\n", "SELECT 1;"),
    Case("html", "<div>\n  |\n</div>\n", "<p>a</p>\n  <p>b</b></p></i>\n", "<p>a</p>"),
    Case("css", ".a {\n  |\n}\n", "color: red;\n  margin: 0); ]\n", "color: red;"),
    Case("json", '{\n  "a": [\n    |\n  ]\n}\n', "1,\n    2}}\n", "1,"),
    Case("yaml", "a:\n  |\nb: 1\n", "c: 1\n  d: 'e' f]\n", "c: 1"),
    Case("shellscript", "f() {\n  |\n}\n", "echo a\n  echo $(b))\n", "echo a"),
]


async def _run_filter(case: Case) -> str:
    prefix, suffix = case.text.split("|")
    admitted = make_admitted(
        language=case.language, path="", prefix=prefix, suffix=suffix, mode=Mode.BLOCK
    )
    engine = FakeEngine(chunks_of(case.engine_text))
    async with (
        engine.complete(make_engine_request()) as chunks,
        filter(chunks, admitted, make_prompt(), make_trace()) as texts,
    ):
        return "".join([text async for text in texts]).rstrip()


def _names(cases: list[Case]) -> list[str]:
    return [f"{case.language}-{index}" for index, case in enumerate(cases)]


@pytest.mark.parametrize("case", ENDS, ids=_names(ENDS))
async def test_a_block_ends_by_the_rules_of_its_language(case: Case) -> None:
    assert await _run_filter(case) == case.shown_text


@pytest.mark.parametrize("case", CLOSERS, ids=_names(CLOSERS))
async def test_text_after_the_cursor_is_not_repeated(case: Case) -> None:
    assert await _run_filter(case) == case.shown_text


@pytest.mark.parametrize("case", BROKEN, ids=_names(BROKEN))
async def test_a_broken_end_is_truncated_to_the_last_valid_line(case: Case) -> None:
    assert await _run_filter(case) == case.shown_text


@pytest.mark.parametrize("case", ENDS, ids=_names(ENDS))
async def test_a_complete_block_stays_unchanged(case: Case) -> None:
    complete_case = Case(case.language, case.text, case.shown_text, case.shown_text)

    assert await _run_filter(complete_case) == case.shown_text
