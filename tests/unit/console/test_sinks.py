"""What went wrong with a sink is kept in one language, and said in the reader's."""

import pytest
from django.utils.translation import override

from console.views.sinks.shown import said_error
from tenants.siem.delivery import ANSWERED, SILENT


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ANSWERED % {"status": 503}, "Das Ziel hat mit dem Status 503 geantwortet."),
        (SILENT, "Das Ziel hat nicht rechtzeitig geantwortet."),
        ("Something with 503 in it.", "Something with 503 in it."),
        ("", ""),
    ],
)
def test_an_error_is_said_in_german(error: str, said: str) -> None:
    with override("de"):
        assert said_error(error) == said
