"""The HTML and SVG of a chart's columns and table rows."""

from datetime import date

from console.charts.chart import COUNT, Series, Time, Unit, build_bar_chart, build_line_chart
from console.templatetags.charts import chart_columns, chart_table_rows

UNIT = Unit(COUNT, short=str, exact=lambda value: f"<{value}>")
TIMES = [Time("R&D", date(2026, 11, 26)), Time("12:00")]


def test_columns_have_a_hover_area_a_bar_for_each_value_and_an_escaped_label() -> None:
    chart = build_bar_chart("", TIMES, [Series("a", [4, None]), Series("b", [None, 2])], UNIT)

    assert chart_columns(chart) == (
        '<g class="column"><rect class="hover-area" x="0.0" y="0" width="500.0" height="200"/>'
        '<rect class="bar-1" x="3.0" y="0" width="494.0" height="200.0"/>'
        "<title>R&amp;D: a &lt;4&gt;, b –</title></g>"
        '<g class="column"><rect class="hover-area" x="500.0" y="0" width="500.0" height="200"/>'
        '<rect class="bar-2" x="503.0" y="100.0" width="494.0" height="100.0"/>'
        "<title>12:00: a –, b &lt;2&gt;</title></g>"
    )


def test_table_rows_have_the_day_the_raw_values_and_the_total() -> None:
    chart = build_bar_chart("", TIMES, [Series("a", [4, None]), Series("b", [1, 2.5])], UNIT)

    assert chart_table_rows(chart) == (
        '<tr data-day="2026-11-26"><th scope="row">R&amp;D</th>'
        '<td class="number" data-value="4">&lt;4&gt;</td>'
        '<td class="number" data-value="1">&lt;1&gt;</td>'
        '<td class="number" data-total>&lt;5&gt;</td></tr>'
        '<tr><th scope="row">12:00</th>'
        '<td class="number" data-value="">–</td>'
        '<td class="number" data-value="2.5">&lt;2.5&gt;</td>'
        '<td class="number" data-total>&lt;2.5&gt;</td></tr>'
    )


def test_table_rows_of_lines_have_no_total() -> None:
    chart = build_line_chart("", TIMES, [Series("a", [4, 1]), Series("b", [1, 2])], UNIT)

    assert "data-total" not in chart_table_rows(chart)
