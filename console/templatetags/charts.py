"""The repeated parts of a chart: `{% chart_columns chart %}`, `{% chart_table_rows chart %}`.

They are functions because a template is too slow for the hundreds of numbers in a chart of a month.
Only texts are escaped, because numbers contain no special characters.
"""

from typing import Final

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from console.charts.chart import Chart, ChartColumn, ChartTableRow

register: Final = template.Library()


@register.simple_tag
def chart_columns(chart: Chart) -> SafeString:
    """Return the SVG of the columns: for each hour or day, the bars and an area for the mouse."""
    columns = (_render_column(column, chart.height) for column in chart.columns)
    return mark_safe("".join(columns))  # noqa: S308  # texts are escaped


@register.simple_tag
def chart_table_rows(chart: Chart) -> SafeString:
    """Return the rows of the data table, with unformatted values in attributes for the script."""
    has_totals = chart.has_totals
    rows = (_render_row(row, has_totals=has_totals) for row in chart.rows)
    return mark_safe("".join(rows))  # noqa: S308  # texts are escaped


def _render_column(column: ChartColumn, height: int) -> str:
    bars = "".join(
        f'<rect class="bar-{part.kind}" x="{part.x}" y="{part.y}" '
        f'width="{part.width}" height="{part.height}"/>'
        for part in column.parts
    )
    hover_area = (
        f'<rect class="hover-area" x="{column.x}" y="0" width="{column.width}" height="{height}"/>'
    )
    return f'<g class="column">{hover_area}{bars}<title>{escape(column.label)}</title></g>'


def _render_row(row: ChartTableRow, *, has_totals: bool) -> str:
    day = row.time.day
    day_attribute = "" if day is None else f' data-day="{day.isoformat()}"'
    cells = "".join(
        f'<td class="number" data-value="{"" if cell.value is None else cell.value}">'
        f"{escape(cell.text)}</td>"
        for cell in row.cells
    )
    total = f'<td class="number" data-total>{escape(row.total)}</td>' if has_totals else ""
    return f'<tr{day_attribute}><th scope="row">{escape(row.time.label)}</th>{cells}{total}</tr>'
