"""A text in a CSV file never becomes a formula, with any separator that a spreadsheet expects."""

import csv
import io
import time

import pytest

from tenants.compliance.exports.formats.cells import escape_csv_formulas, escape_formula
from tenants.compliance.exports.rows import ColumnType

_FORMULA = "=HYPERLINK(A1)"
# Spreadsheets also accept the full-width forms of these characters.
_FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def read_as(delimiter: str, cell: str) -> list[str]:
    """Write two cells with a comma between them; return the cells read with `delimiter`."""
    line = io.StringIO(newline="")
    csv.writer(line).writerow(["first", cell])
    line.seek(0)
    return [cell for row in csv.reader(line, delimiter=delimiter) for cell in row]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(
    "text",
    [
        _FORMULA,
        f"a;{_FORMULA};b",
        f"a; {_FORMULA}",
        f'a;"{_FORMULA}";b',
        f'a;"" {_FORMULA}',
        f"a\n{_FORMULA}",
        f"a\r\n{_FORMULA}",
        f"a\t{_FORMULA}",
        f"a;\n;{_FORMULA}",
        "a;＝1+1",
        "a;-2",
    ],
)
def test_no_cell_begins_a_formula_with_any_separator(text: str, delimiter: str) -> None:
    cells = read_as(delimiter, str(escape_csv_formulas(ColumnType.TEXT, text)))

    assert [cell for cell in cells if cell.lstrip(' \t\r\n"').startswith(_FORMULA_STARTS)] == []


@pytest.mark.parametrize("text", ["a;b", "x=1; y=2", "a-b", "mail@acme.example; or not", "é\n"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert escape_csv_formulas(ColumnType.TEXT, text) == text


def test_a_formula_inside_a_text_is_not_escaped_in_an_xlsx_file() -> None:
    assert escape_formula(ColumnType.TEXT, "a;=1") == "a;=1"


def test_a_long_text_of_separators_is_escaped_in_linear_time() -> None:
    started_s = time.process_time()

    escape_csv_formulas(ColumnType.TEXT, ";\n" * 500_000)

    cpu_s = time.process_time() - started_s
    assert cpu_s < 5  # a linear algorithm needs far less
