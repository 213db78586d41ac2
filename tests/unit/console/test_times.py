"""The HTML element of a time, in the reader's zone and language."""

from datetime import UTC, datetime, timedelta, timezone

from django.utils.timezone import override as override_zone
from django.utils.translation import override

from console.templatetags.times import time_element

AT = datetime(2026, 11, 26, 17, 5, tzinfo=UTC)
BERLIN = timezone(timedelta(hours=1), "CET")


def test_a_time_is_shown_in_the_readers_zone_and_language() -> None:
    with override_zone(BERLIN), override("de"):
        element = time_element(AT)

    assert element == (
        '<time datetime="2026-11-26T18:05:00+01:00" title="26. November 2026, 18:05:00 CET">'
        "26. Nov 2026, 18:05</time>"
    )


def test_a_date_is_shown_without_its_time() -> None:
    with override_zone(BERLIN), override("de"):
        element = time_element(AT, date=True)

    assert element.endswith(">26. Nov 2026</time>")
