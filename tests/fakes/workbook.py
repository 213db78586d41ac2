"""A reader for the workbooks that exports write. Cells become texts, numbers or Booleans."""

import io
import re
import zipfile
from xml.etree import ElementTree

_NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def read_workbook(data: bytes) -> list[dict[str, str | float | bool | None]]:
    """Return the rows after the first one, as dictionaries with the names in the first row.

    A formula is an error: exports contain none.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))  # noqa: S314  # our own
    assert sheet.find(f".//{_NAMESPACE}f") is None
    header, *rows = [_cells(row) for row in sheet.iter(f"{_NAMESPACE}row")]
    return [{str(name): row.get(column) for column, name in header.items()} for row in rows]


def _cells(row: ElementTree.Element) -> dict[str, str | float | bool]:
    """Return the values of the cells, by the letters of their columns."""
    # The reference "B7" is column B.
    return {re.sub(r"\d", "", cell.attrib["r"]): _value(cell) for cell in row}


def _value(cell: ElementTree.Element) -> str | float | bool:
    text = "".join(part.text or "" for part in cell.iter(f"{_NAMESPACE}t"))
    number = cell.findtext(f"{_NAMESPACE}v")
    if number is None:
        return text
    return number == "1" if cell.get("t") == "b" else float(number)
