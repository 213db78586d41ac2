"""The place for the docstring of the function or class in which the cursor is."""

import pytest

from caret_ls.docstring_syntax import DocstringPlace, find_docstring_place

PYTHON = """\
import os


class Reader:
    def __init__(self, path):
        self.path = path

        self.mode = "r"

    def read(
        self,
        size: int,
    ) -> bytes:
        '''Read.'''
        return b""


x = 1
""".splitlines()
TYPESCRIPT = """\
export async function load(path: string): Promise<string> {
  if (path) {
    return path;
  }
}

class Cart {
  total(items: Item[]): number {
    return 0;
  }
  /** Adds. */
  add(item: Item) {
  }
}
const f = (a) => a;
""".splitlines()
ABOVE_FIRST_LINE = DocstringPlace(0, "/**", has_docstring=False)


@pytest.mark.parametrize(
    # `line` is the line of the cursor. Lines are counted from 0.
    ("language", "lines", "line", "expected"),
    [
        # In the header of the class, at the beginning and the end of `__init__`, in the header of
        # `read`, and outside of the class.
        ("python", PYTHON, 3, DocstringPlace(4, '    """', has_docstring=False)),
        ("python", PYTHON, 5, DocstringPlace(5, '        """', has_docstring=False)),
        ("python", PYTHON, 7, DocstringPlace(5, '        """', has_docstring=False)),
        ("python", PYTHON, 11, DocstringPlace(13, '        """', has_docstring=True)),
        ("python", PYTHON, 17, None),
        ("python", ["def f(): pass"], 0, None),
        ("python", ["def f():"], 0, DocstringPlace(1, '    """', has_docstring=False)),
        # In `load`, in `total`, in `add` and in `f`.
        ("typescript", TYPESCRIPT, 2, DocstringPlace(0, "/**", has_docstring=False)),
        ("typescript", TYPESCRIPT, 8, DocstringPlace(7, "  /**", has_docstring=False)),
        ("typescript", TYPESCRIPT, 11, DocstringPlace(11, "  /**", has_docstring=True)),
        ("typescript", TYPESCRIPT, 14, DocstringPlace(14, "/**", has_docstring=False)),
        ("go", ["func (r *Reader) Read() {", "\treturn"], 1, ABOVE_FIRST_LINE),
        ("rust", ["pub(crate) fn f() {", "    x"], 1, ABOVE_FIRST_LINE),
        ("c", ["static int f(int a) {", "  return a;"], 1, ABOVE_FIRST_LINE),
        ("json", ["{"], 0, None),
        ("python", [], 0, None),
    ],
)
def test_the_function_or_class_around_a_line_is_found(
    language: str, lines: list[str], line: int, expected: DocstringPlace | None
) -> None:
    assert find_docstring_place(language, lines, line) == expected
