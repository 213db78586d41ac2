"""Error messages are in the reader's language, and in English for programs."""

from enum import StrEnum

import pytest
from django.utils import translation
from django.utils.functional import Promise

from caret.contracts.api_key import KeyKind
from caret.contracts.policy import Mode, Tier
from caret.contracts.snapshot import TenantStatus
from caret.contracts.usage import FinishReason
from caret.foundation.crypto.signing import BadSignature
from console.texts.error_messages import translate_error
from console.texts.labels import label_of
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.operator_roles import OperatorRole
from tenants.base.permissions import Role
from tenants.compliance.exports.jobs.state_machine import JobState


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


@pytest.mark.parametrize(
    ("value", "german"),
    [
        (JobState.EXPIRED, "abgelaufen"),
        (JobState.RUNNING, "in Arbeit"),
        (Role.OWNER, "Inhaber"),
        (Tier.FAST, "Schnell"),
    ],
)
def test_values_of_an_error_have_labels(value: str, german: str) -> None:
    error = Conflict("The export is already {state}.", state=value)

    assert error.message == f"The export is already {value}."
    with translation.override("de"):
        assert translate_error(error) == f"Der Export ist schon {german}."


@pytest.mark.parametrize(
    "enumeration",
    [Role, OperatorRole, Mode, Tier, KeyKind, FinishReason, TenantStatus, JobState],
)
def test_each_value_has_a_label(enumeration: type[StrEnum]) -> None:
    """A label is a Promise: a text that Django translates when it is shown."""
    assert all(isinstance(label_of(value), Promise) for value in enumeration)


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
