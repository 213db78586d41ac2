"""Demo data: consents, withdrawals and some captured content."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from caret.contracts.captured_content import CapturedCompletion, CapturedSuggestionEdit, Item
from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason, OutcomeEvent
from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import RequestId, UserId, new_request_id
from tenants.demo.members import DemoCompany, DemoUser
from tenants.demo.traffic.timeline import DemoTimeline, TimelineEvent
from tenants.privacy.consent.consent import UserConsent
from tenants.privacy.consent.consent_texts import USER_CONSENT_VERSIONS
from tenants.privacy.consent_lifecycle import ConsentChoice, set_consent, withdraw_consent
from tenants.privacy.content_capture.erasure import erase_requested_content
from tenants.privacy.content_capture.operations import store_content

# Every third developer consents, in addition to the users with example content.
_DEVELOPERS_PER_CONSENT: Final = 3
# This many users, the first who consent, keep their consent until the end of the demo timeline.
# After them, every second user withdraws consent. When the timeline has ended,
# `store_example_content` withdraws the consent of one of the first users.
_NUM_LASTING_CONSENTS: Final = 4
# Shares of the timeline's duration. Each user consents a little later than the previous one. After
# _NUM_CONSENT_DAYS users, the next user consents on the first day again.
_FIRST_CONSENT_SHARE: Final = 0.62
_SHARE_BETWEEN_CONSENTS: Final = 0.02
_NUM_CONSENT_DAYS: Final = 8
_WITHDRAWAL_SHARE: Final = 0.86
_EXAMPLE_PREFIX: Final = "def mean(values: list[float]) -> float:\n    "
_EXAMPLE_COMPLETION: Final = "return sum(values) / len(values)"
_NUM_EXAMPLE_USERS: Final = 2
_NUM_EXAMPLE_OBJECTS: Final = 4  # stored objects of each of these users


def plan_consents(company: DemoCompany) -> list[TimelineEvent]:
    """Return the events of users who give and withdraw consent.

    The events are later than the policy change that allows consent (tenants.demo.policies).
    """
    timeline = company.timeline
    consenting_users = _choose_consenting_users(company)
    withdrawn_at = timeline.moment_at(_WITHDRAWAL_SHARE, hour=14)
    return [
        *(
            TimelineEvent(_choose_consent_time(timeline, number), _make_consent(company, person))
            for number, person in enumerate(consenting_users)
        ),
        *(
            TimelineEvent(withdrawn_at, partial(_withdraw_consent, company, person))
            for person in consenting_users[_NUM_LASTING_CONSENTS::2]
        ),
    ]


def _choose_consent_time(timeline: DemoTimeline, number: int) -> datetime:
    """Return the time at which the user with this position consents."""
    num_steps = number % _NUM_CONSENT_DAYS
    share = _FIRST_CONSENT_SHARE + _SHARE_BETWEEN_CONSENTS * num_steps
    return timeline.moment_at(share, hour=14)


def store_example_content(company: DemoCompany, at: datetime) -> None:
    """Store content of two users who consent. The second one then withdraws consent.

    Called after the events of the timeline.
    """
    first, second = _choose_consenting_users(company)[:_NUM_EXAMPLE_USERS]
    for person in (first, second):
        for number in range(_NUM_EXAMPLE_OBJECTS):
            items = _make_items(person.user_id, at + timedelta(minutes=number))
            store_content(
                tenant_id=company.timeline.tenant_id,
                user_id=person.user_id,
                items=items,
                now=at + timedelta(minutes=number + 1),
            )
    _withdraw_consent(company, second, at + timedelta(hours=1))
    # A worker would erase the withdrawn content a minute later.
    erase_requested_content(
        tenant_id=company.timeline.tenant_id, now=at + timedelta(hours=1, minutes=1)
    )


def _choose_consenting_users(company: DemoCompany) -> list[DemoUser]:
    """Return the users who consent: some of the developers who stay until the end.

    The first two (_NUM_EXAMPLE_USERS) are the users with example content.
    """
    staying = [
        person for person in company.people if person not in (company.leaver, company.erased)
    ]
    developers = [person for person in staying if person in company.developers]
    return [
        *developers[:_NUM_EXAMPLE_USERS],
        *developers[_NUM_EXAMPLE_USERS::_DEVELOPERS_PER_CONSENT],
    ]


def _make_consent(company: DemoCompany, person: DemoUser) -> Callable[[datetime], None]:
    """Return a function that gives the user's consent, for an event."""
    # The parity of the name's length serves as a repeatable choice.
    allows_training = len(person.persona.name) % 2 == 0
    consent = UserConsent(content_capture=True, training=allows_training)

    def agree(now: datetime) -> None:
        set_consent(
            actor=person.as_actor(company.timeline.tenant_id),
            choice=ConsentChoice(consent, frozenset(USER_CONSENT_VERSIONS.values())),
            now=now,
        )

    return agree


def _withdraw_consent(company: DemoCompany, person: DemoUser, now: datetime) -> None:
    withdraw_consent(actor=person.as_actor(company.timeline.tenant_id), now=now)


def _make_items(user_id: UserId, at: datetime) -> list[Item]:
    """Return an example completion, and the report that the user accepted it unchanged."""
    request_id: RequestId = new_request_id(now_ms=to_unix_ms(at))
    completion = CapturedCompletion(
        request_id=request_id,
        user_id=user_id,
        occurred_at_ms=to_unix_ms(at),
        mode=Mode.INLINE,
        language="python",
        repository="data/reports",
        path="reports/means.py",
        prefix=_EXAMPLE_PREFIX,
        suffix="",
        chat=(),
        completion=_EXAMPLE_COMPLETION,
        finish_reason=FinishReason.STOP,
    )
    edit = CapturedSuggestionEdit(
        request_id=request_id,
        user_id=user_id,
        occurred_at_ms=to_unix_ms(at + timedelta(seconds=30)),
        event=OutcomeEvent.ACCEPTED,
        after_ms=1_200,
        text=_EXAMPLE_COMPLETION,
    )
    return [completion, edit]
