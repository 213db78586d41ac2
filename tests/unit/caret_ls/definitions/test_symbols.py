"""The symbols of a line, and the lines that define a symbol."""

import pytest

from caret_ls.definitions.symbols import (
    MAX_EXCERPT_CHARS,
    MAX_EXCERPT_LINES,
    Symbol,
    excerpt_at,
    find_symbols,
)

_CLASS = '''\
class Order:
    """An order.

    It has lines.
    """

    number: int
    # A comment.
    paid: bool = False

    def total(self, rate: float) -> float:
        tax = rate * 2
        return tax

VALUE = 1
'''


def test_members_before_the_cursor_are_found_with_their_objects() -> None:
    assert find_symbols("    tax = order.total(rates[") == [
        Symbol("tax", 4),
        Symbol("order", 10),
        Symbol("order.total", 16),
        Symbol("rates", 22),
    ]


def test_names_with_fewer_than_three_characters_are_left_out() -> None:
    assert find_symbols("    xy = of.total(a, b[") == [Symbol("of.total", 12)]


def test_the_symbol_that_is_being_typed_is_left_out() -> None:
    assert find_symbols("    order.tot") == [Symbol("order", 4)]


def test_only_the_last_four_symbols_of_a_line_are_found() -> None:
    symbols = find_symbols("one, two, three, four, five, six, ")

    assert [symbol.name for symbol in symbols] == ["three", "four", "five", "six"]


def test_positions_count_utf16_code_units() -> None:
    assert find_symbols('"🙂", order.') == [Symbol("order", 6)]


@pytest.mark.parametrize("line", ["", "(", "12345 ", "'"])
def test_a_line_may_have_no_symbols(line: str) -> None:
    assert find_symbols(line) == []


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        ("def f(a, b):\n    return a\n", "def f(a, b):\n"),
        (
            "    def f(\n        a,\n    ) -> int:\n        return a\n",
            "def f(\n    a,\n) -> int:\n",
        ),
        ("func Do(a int) error {\n\treturn nil\n}\n", "func Do(a int) error {\n"),
        ("RATE = 3\nOTHER = 4\n", "RATE = 3\n"),
        ("def f(a):\r\n    return '\x0c'\r\n", "def f(a):\n"),
        ("const a = {\n  one: 1,\n  two: 2,\n};\nlet b;\n", "const a = {\n  one: 1,\n  two: 2,\n"),
        (
            "export interface A {\n  // Its name.\n  name: string;\n  run(): void;\n}\nlet b;\n",
            "export interface A {\n  name: string;\n  run(): void;\n",
        ),
        (
            _CLASS,
            "class Order:\n    number: int\n    paid: bool = False\n"
            "    def total(self, rate: float) -> float:\n",
        ),
        (
            "class A\n{\n    int x;\n    void Run()\n    {\n        x = 1;\n    }\n}\nint b;\n",
            "class A\n    int x;\n    void Run()\n",
        ),
        (
            'class A:\n    r"""A docstring.\n\n    With a \\.\n    """\n\n    name: str\n',
            "class A:\n    name: str\n",
        ),
        ("", ""),
        ("\n\n", ""),
    ],
)
def test_an_excerpt_is_a_signature_or_a_type_with_its_members(text: str, excerpt: str) -> None:
    assert excerpt_at(text, 0) == excerpt


def test_only_line_ends_of_editors_count() -> None:
    """Editors do not end a line at a form feed or at U+2028, as `str.splitlines` does."""
    assert excerpt_at("a = '\x0c'\nb = '\u2028'\ndef f():\n    pass\n", 2) == "def f():\n"


@pytest.mark.parametrize("line", [-1, 5, 2**40])
def test_a_line_outside_of_the_text_raises_nothing(line: int) -> None:
    excerpt_at("def f():\n    pass\n", line)


def test_an_excerpt_is_bounded() -> None:
    long_class = "class A:\n" + "    name: str\n" * 500
    class_with_long_lines = "class A:\n" + "    name: str = 'some text'\n" * 500
    long_line = "def f(" + "a, " * 5_000 + "):\n"

    assert excerpt_at(long_class, 0).count("\n") == MAX_EXCERPT_LINES
    # MAX_EXCERPT_CHARS does not count the line ends.
    assert len(excerpt_at(class_with_long_lines, 0)) < MAX_EXCERPT_CHARS + MAX_EXCERPT_LINES
    assert excerpt_at(long_line, 0) == ""
