"""The syntax region at the cursor: code, a comment or a string."""

import pytest

from caret_ls.syntax_regions import SyntaxRegion, region_at

CASES = [  # language, text before the cursor, region
    ("python", "a = 1", SyntaxRegion.CODE),
    ("python", "a = 1  # why", SyntaxRegion.COMMENT),
    ("python", "# why\na = ", SyntaxRegion.CODE),
    ("python", "a = 'it", SyntaxRegion.STRING),
    ("python", "a = 'it' + ", SyntaxRegion.CODE),
    ("python", 'a = "say \\"', SyntaxRegion.STRING),
    ("python", 'a = "say \\\\" + ', SyntaxRegion.CODE),
    ("python", 'a = "#" + ', SyntaxRegion.CODE),
    ("python", 'def f():\n    """What\n    it', SyntaxRegion.STRING),
    ("python", 'def f():\n    """What it does."""\n    ', SyntaxRegion.CODE),
    ("python", 'a = "open\nb = ', SyntaxRegion.CODE),
    ("go", "a := `raw\nmore", SyntaxRegion.STRING),
    ("go", "a := 1 // why", SyntaxRegion.COMMENT),
    ("typescript", "/* why\n   more", SyntaxRegion.COMMENT),
    ("typescript", "/* why */ let ", SyntaxRegion.CODE),
    ("c", "char c = '\"'; int ", SyntaxRegion.CODE),
    ("rust", "fn f<'a>(x: &'a str) -> ", SyntaxRegion.CODE),
    ("sql", "select 1 -- why", SyntaxRegion.COMMENT),
    ("html", "<p><!-- why", SyntaxRegion.COMMENT),
    ("html", "<p>don't ", SyntaxRegion.CODE),
    ("lua", "--[[ why\n more", SyntaxRegion.COMMENT),
    ("yaml", "a: b # why", SyntaxRegion.COMMENT),
    ("Python", "# why", SyntaxRegion.COMMENT),
    ("klingon", "# 'why", SyntaxRegion.CODE),
]


@pytest.mark.parametrize(("language", "prefix", "region"), CASES)
def test_the_region_at_the_cursor_is_detected(
    language: str, prefix: str, region: SyntaxRegion
) -> None:
    assert region_at(language, prefix) is region
    assert region_at(language, prefix.replace("\n", "\r\n")) is region
