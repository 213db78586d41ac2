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
        # The cursor is not in a docstring, so nothing is cut off.
        (f'{DEF}    """Add."""\n    ', "return a + b\n", "return a + b\n"),
        (f'{DEF}    """Add.\n\n    Slowly.\n    """\n    ', 'x = """a"""\n', 'x = """a"""\n'),
        ("/* a */\n", "x = 1; /* b */", "x = 1; /* b */"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("chunk_chars", [1, 2, 100])
def test_the_text_ends_with_the_docstring(
    prefix: str, text: str, expected: str, chunk_chars: int
) -> None:
    docstring = DocstringEnd(prefix)
    chunks = [text[start : start + chunk_chars] for start in range(0, len(text), chunk_chars)]

    shown_text = "".join([docstring.feed(chunk) for chunk in chunks])

    assert shown_text == expected
    assert docstring.has_ended == (expected != text)
