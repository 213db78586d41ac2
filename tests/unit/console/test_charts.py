"""Charts as numbers."""

from console.charts import CHART_HEIGHT, CHART_WIDTH, hourly_bars


def test_the_busiest_hour_is_as_high_as_the_picture() -> None:
    bars = hourly_bars([1, 4, 2])

    assert [bar.height for bar in bars] == [18.0, 72.0, 36.0]
    assert bars[1].y == 0


def test_a_single_request_beside_many_is_still_seen() -> None:
    assert hourly_bars([1, 10_000])[0].height == 2.0


def test_hours_without_requests_divide_by_nothing() -> None:
    bars = hourly_bars([0] * 24)

    assert {bar.height for bar in bars} == {1.0}


def test_bars_stay_within_the_picture_and_stand_on_its_ground() -> None:
    bars = hourly_bars(list(range(24)))

    assert all(bar.x >= 0 and bar.x + bar.width <= CHART_WIDTH for bar in bars)
    assert all(round(bar.y + bar.height, 1) == CHART_HEIGHT for bar in bars)


def test_the_last_bar_is_this_hour() -> None:
    assert [bar.label for bar in hourly_bars([3, 5])] == ["1 h ago: 3", "this hour: 5"]
