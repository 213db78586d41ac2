"""The part of a file around the cursor that is sufficient for parsing the new text.

The last argument of `extract_excerpt` is an index of SIZES; 0 is the smallest excerpt.
"""

from hypothesis import given
from hypothesis import strategies as st

from inference.filtering.syntax_excerpt import SIZES, extract_excerpt

FILLER = "".join(f"        a{number} = {number}\n" for number in range(100))


def test_a_small_file_is_kept_complete() -> None:
    part = extract_excerpt("def f(a):\n    b = ", "\n    return b\n", 0)

    assert (part.before, part.after) == ("def f(a):\n    b = ", "\n    return b\n")


def test_the_headers_of_enclosing_blocks_are_kept() -> None:
    prefix = f"import os\n\n\nclass A:\n    name = 1\n\n    def f(self):\n{FILLER}        b = "

    lines = extract_excerpt(prefix, "", 0).before.split("\n")

    assert lines[:2] == ["class A:", "    def f(self):"]
    assert lines[-1] == "        b = "
    assert len(lines) < 20  # of the 108 lines of the prefix


def test_a_header_of_several_lines_is_kept() -> None:
    prefix = f"def f(\n    a,\n    b,\n):\n{FILLER.replace('        ', '    ')}    c = "

    assert extract_excerpt(prefix, "", 0).before.startswith("def f(\n    a,\n    b,\n):\n")


def test_a_partial_first_line_opens_no_block() -> None:
    cut_prefix = f"rue, 0.1))\n    def f(self):\n{FILLER}        b = "

    # The header is kept, and then the last lines of the filler, which begin with a9.
    assert extract_excerpt(cut_prefix, "", 0).before.startswith("    def f(self):\n        a9")


def test_a_header_close_to_the_cursor_is_kept_once() -> None:
    prefix = "from a import (\n    b,\n    c,\n    d,\n)\n\n\ne = [\n    'b',\n    'c',\n    'd"

    assert extract_excerpt(prefix, "", 0).before == prefix


def test_a_closing_bracket_is_omitted_if_its_opening_bracket_is() -> None:
    suffix = f"\n{FILLER}\n    def g(\n        self,\n    ):\n        pass\n"

    kept_suffix = extract_excerpt("class A:\n    def f(self):\n        b = ", suffix, 0).after

    assert ")" not in kept_suffix


def test_a_branch_is_kept_with_a_stand_in_for_its_beginning() -> None:
    prefix = f"def f(a):\n    if a:\n{FILLER}    else:\n{FILLER}        c = "

    assert extract_excerpt(prefix, "", 0).before.startswith(
        "def f(a):\n    if 1:\n        pass\n    else:\n"
    )


def test_the_ends_of_enclosing_blocks_are_kept() -> None:
    suffix = f"\n{FILLER}      }}\n      g();\n    }}\n    h() {{}}\n  }}\n}}\n"

    kept_suffix = extract_excerpt(
        "class A {\n  f() {\n    if (a) {\n      if (b) {\n        ", suffix, 0
    ).after

    assert [line for line in kept_suffix.split("\n") if line.strip() == "}"] == [
        "      }",
        "    }",
        "  }",
        "}",
    ]


def test_a_bracketed_list_is_not_split() -> None:
    items = "".join(f"    {number},\n" for number in range(15))
    prefix = f"import os\n\na = [\n{items}]\nb = "

    assert "a = [\n" in extract_excerpt(prefix, "\n", 0).before


def test_the_stable_lines_exclude_the_line_of_the_cursor() -> None:
    part = extract_excerpt("def f(a):\n    b = ", ")\n    return b\n", 0)

    assert part.stable_lines == "def f(a):\n    return b\n"
    assert part.line_before == "    b = "


LINES = st.lists(
    st.sampled_from(
        ["", "a", "  b(", "  )", "    else:", "} else {", "}", "\tc", '  """', "(", "]"]
    ),
    max_size=120,
).map("\n".join)


@given(LINES, LINES, st.sampled_from(range(len(SIZES))))
def test_an_excerpt_contains_the_whole_line_of_the_cursor(
    prefix: str, suffix: str, size: int
) -> None:
    part = extract_excerpt(prefix, suffix, size)

    assert part.line_before == prefix.rpartition("\n")[2]
    assert part.after.partition("\n")[0] == suffix.partition("\n")[0]


@given(st.integers(min_value=1_000, max_value=20_000))
def test_the_excerpt_of_a_long_file_is_short(num_lines: int) -> None:
    text = "        a = 1\n" * num_lines

    part = extract_excerpt(f"class A:\n    def f(self):\n{text}        ", f"\n{text}", 0)

    assert len(part.before) + len(part.after) < 1_000


def test_a_very_long_line_is_cut() -> None:
    part = extract_excerpt("a" * 1_000_000, "b" * 1_000_000, 0)

    assert len(part.before) + len(part.after) < 20_000
