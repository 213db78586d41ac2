"""Error messages are in the reader's language, and in English for programs."""

from django.utils import translation

from caret.contracts.snapshot import TenantStatus
from caret.foundation.crypto.signing import BadSignature
from console.texts.error_messages import translate_error
from tenants.base.errors import Conflict, InvalidValue


def test_an_error_is_translated_with_its_values() -> None:
    error = Conflict("You already have {most} teams, which is the limit.", most=50)

    with translation.override("de"):
        assert translate_error(error) == "Sie haben schon 50 Teams; mehr sind nicht möglich."


def test_a_status_in_a_translated_error_is_translated() -> None:
    error = Conflict(
        "{slug} is {status} and cannot become {wanted}.",
        slug="acme",
        status=TenantStatus.CLOSED,
        wanted=TenantStatus.SUSPENDED,
    )

    assert error.message == "acme is closed and cannot become suspended."
    with translation.override("de"):
        assert translate_error(error) == (
            "acme hat den Status „geschlossen“ und kann nicht den Status „gesperrt“ bekommen."
        )


def test_programs_and_logs_get_the_error_in_english() -> None:
    with translation.override("de"):
        error = InvalidValue("name", "Enter a team name of 1 to {most} characters.", most=80)

        assert error.message == str(error) == "Enter a team name of 1 to 80 characters."


def test_a_verification_error_is_translated() -> None:
    with translation.override("de"):
        assert translate_error(BadSignature("it is not signed")) == "es ist nicht signiert"


def test_an_unknown_message_with_braces_stays_unchanged() -> None:
    with translation.override("de"):
        assert (
            translate_error(InvalidValue("metadata_url", "{no field of ours}"))
            == "{no field of ours}"
        )
