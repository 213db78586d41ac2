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


@pytest.mark.parametrize(
    ("language", "lines", "line", "expected"),  # lines are counted from 0
    [
        ("python", PYTHON, 3, DocstringPlace(4, '    """', has_docstring=False)),
        ("python", PYTHON, 5, DocstringPlace(5, '        """', has_docstring=False)),
        ("python", PYTHON, 7, DocstringPlace(5, '        """', has_docstring=False)),
        ("python", PYTHON, 11, DocstringPlace(13, '        """', has_docstring=True)),
        ("python", PYTHON, 17, None),
        ("python", ["def f(): pass"], 0, None),
        ("python", ["def f():"], 0, DocstringPlace(1, '    """', has_docstring=False)),
        ("typescript", TYPESCRIPT, 2, DocstringPlace(0, "/**", has_docstring=False)),
        ("typescript", TYPESCRIPT, 8, DocstringPlace(7, "  /**", has_docstring=False)),
        ("typescript", TYPESCRIPT, 11, DocstringPlace(11, "  /**", has_docstring=True)),
        ("typescript", TYPESCRIPT, 14, DocstringPlace(14, "/**", has_docstring=False)),
        ("go", ["func (r *Reader) Read() {", "\treturn"], 1, DocstringPlace(0, "/**", False)),
        ("rust", ["pub(crate) fn f() {", "    x"], 1, DocstringPlace(0, "/**", False)),
        ("c", ["static int f(int a) {", "  return a;"], 1, DocstringPlace(0, "/**", False)),
        ("json", ["{"], 0, None),
        ("python", [], 0, None),
    ],
)
def test_the_function_or_class_around_a_line_is_found(
    language: str, lines: list[str], line: int, expected: DocstringPlace | None
) -> None:
    assert find_docstring_place(language, lines, line) == expected
