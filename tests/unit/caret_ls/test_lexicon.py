import pytest

from caret_ls.syntax_regions import Region, region_at

CASES = [
    ("python", "a = 1", Region.CODE),
    ("python", "a = 1  # why", Region.COMMENT),
    ("python", "# why\na = ", Region.CODE),
    ("python", "a = 'it", Region.STRING),
    ("python", "a = 'it' + ", Region.CODE),
    ("python", 'a = "say \\"', Region.STRING),
    ("python", 'a = "say \\\\" + ', Region.CODE),
    ("python", 'a = "#" + ', Region.CODE),
    ("python", 'def f():\n    """What\n    it', Region.STRING),
    ("python", 'def f():\n    """What it does."""\n    ', Region.CODE),
    ("python", 'a = "open\nb = ', Region.CODE),
    ("go", "a := `raw\nmore", Region.STRING),
    ("go", "a := 1 // why", Region.COMMENT),
    ("typescript", "/* why\n   more", Region.COMMENT),
    ("typescript", "/* why */ let ", Region.CODE),
    ("c", "char c = '\"'; int ", Region.CODE),
    ("rust", "fn f<'a>(x: &'a str) -> ", Region.CODE),
    ("sql", "select 1 -- why", Region.COMMENT),
    ("html", "<p><!-- why", Region.COMMENT),
    ("html", "<p>don't ", Region.CODE),
    ("lua", "--[[ why\n more", Region.COMMENT),
    ("yaml", "a: b # why", Region.COMMENT),
    ("Python", "# why", Region.COMMENT),
    ("klingon", "# 'why", Region.CODE),
]


@pytest.mark.parametrize(("language", "prefix", "region"), CASES)
def test_where_a_cursor_stands(language: str, prefix: str, region: Region) -> None:
    assert region_at(language, prefix) is region
    assert region_at(language, prefix.replace("\n", "\r\n")) is region
