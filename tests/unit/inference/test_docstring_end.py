"""A completion in docstring mode ends with the docstring, whatever the size of its chunks."""

import pytest

from inference.filtering.docstring_end import DocstringEnd

DEF = "def add(a, b):\n"


@pytest.mark.parametrize(
    ("prefix", "text", "expected"),
    [
        (f'{DEF}    """', 'Add.""" \n    return a', 'Add."""'),
        (f'{DEF}    r"""', 'Add."""\n', 'Add."""'),
        (f"{DEF}    '''", "Add.'''\n    x = '''a'''", "Add.'''"),
        (f'{DEF}    """Add', ' two.\n\n    Slowly."""\n    return', ' two.\n\n    Slowly."""'),
        (f'{DEF}    """Add.\n\n    ', 'Slowly.\n    """\n    return', 'Slowly.\n    """'),
        (f"{DEF}    ", '"""Add."""\n    return a + b\n', '"""Add."""'),
        (DEF, '    """Add.\n    """\n    return', '    """Add.\n    """'),
        ("/**", "\n * Add.\n */\nfunction add() {}", "\n * Add.\n */"),
        ("  /**\n   * ", "Add.\n   */\n  add() {}", "Add.\n   */"),
        ('"""', 'A module."""\nimport os', 'A module."""'),
        ('# Licence\n"""', 'A module."""\nimport os', 'A module."""'),
        # Not in a docstring: nothing is cut.
        (f'{DEF}    """Add."""\n    ', "return a + b\n", "return a + b\n"),
        (f'{DEF}    """Add.\n\n    Slowly.\n    """\n    ', 'x = """a"""\n', 'x = """a"""\n'),
        ("/* a */\n", "x = 1; /* b */", "x = 1; /* b */"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 2, 100])
def test_the_text_ends_with_the_docstring(prefix: str, text: str, expected: str, size: int) -> None:
    docstring = DocstringEnd(prefix)

    parts = [docstring.feed(text[at : at + size]) for at in range(0, len(text), size)]

    assert "".join(parts) == expected
    assert docstring.has_ended == (expected != text)
