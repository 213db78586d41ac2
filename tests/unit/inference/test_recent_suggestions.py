"""Events that Tabby clients report about a suggestion are recorded as its outcomes."""

import json
from typing import Any

import pytest

from caret.contracts.usage import OutcomeEvent
from caret.foundation.ids import RequestId
from inference.gateway.protocol.recent_suggestions import MAX_REMEMBERED
from tests.fakes.asgi import FakeServer
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import KEY, NEIGHBOURS_KEY, FakeGateway
from tests.fakes.http_gateway import send_request
from tests.fakes.tenants import ALICE, GLOBEX, make_principal

SUGGESTION = "first\nsecond"
SEGMENTS = {"segments": {"prefix": "a = ", "suffix": ""}}


def make_gateway() -> FakeGateway:
    return FakeGateway(engine=FakeEngine(chunks_of(*SUGGESTION.splitlines(keepends=True))))


async def request_completion(gateway: FakeGateway) -> str:
    """Request a completion and return its ID, as the Tabby client gets it."""
    server = await send_request(gateway, "/v1/completions", SEGMENTS)
    return str(json.loads(server.body)["id"])


async def send_event(
    gateway: FakeGateway,
    identifier: str,
    kind: str,
    *,
    query: str = "",
    key: str = KEY.text,
    **fields: Any,
) -> FakeServer:
    """Report an event, as the Tabby client does. `fields` replace or extend the body."""
    body = {"type": kind, "completion_id": identifier, "choice_index": 0, "view_id": "v", **fields}
    return await send_request(gateway, f"/v1/events{query}", body, key=key)


async def test_views_selections_and_dismissals_become_outcomes() -> None:
    gateway = make_gateway()
    identifier = await request_completion(gateway)

    await send_event(gateway, identifier, "view")
    await send_event(gateway, identifier, "select", elapsed=386)
    await send_event(gateway, identifier, "dismiss", elapsed=45.4)

    outcomes = [
        (outcome.event, outcome.chars, outcome.after_ms) for outcome in gateway.journal.outcomes
    ]
    num_chars = len(SUGGESTION)
    assert outcomes == [
        ("shown", num_chars, 0),
        ("accepted", num_chars, 386),
        ("rejected", num_chars, 45),
    ]
    (completion,) = gateway.journal.completions
    assert {outcome.request_id for outcome in gateway.journal.outcomes} == {completion.request_id}
    assert {outcome.user_id for outcome in gateway.journal.outcomes} == {completion.user_id}


@pytest.mark.parametrize(
    ("query", "fields"), [("?select_kind=line", {}), ("", {"select_kind": "line"})]
)
async def test_an_accepted_line_is_a_partial_acceptance(query: str, fields: dict[str, str]) -> None:
    gateway = make_gateway()

    await send_event(gateway, await request_completion(gateway), "select", query=query, **fields)

    (outcome,) = gateway.journal.outcomes
    assert (outcome.event, outcome.chars) == ("partially_accepted", len("first"))


async def test_several_views_of_a_completion_count_once() -> None:
    gateway = make_gateway()
    identifier = await request_completion(gateway)

    for _ in range(3):
        await send_event(gateway, identifier, "view")

    assert len(gateway.journal.outcomes) == 1


@pytest.mark.parametrize("identifier", ["", "cmpl-unknown", "agent-1", "x" * 1000])
async def test_events_of_unknown_completions_are_dropped(identifier: str) -> None:
    gateway = make_gateway()

    server = await send_event(gateway, identifier, "view")

    assert (server.status, gateway.journal.outcomes) == (200, [])


async def test_other_events_are_dropped() -> None:
    gateway = make_gateway()

    server = await send_event(
        gateway, await request_completion(gateway), "telemetry", elapsed=-1e300
    )

    assert (server.status, gateway.journal.outcomes) == (200, [])


async def test_another_tenant_cannot_report_an_outcome() -> None:
    gateway = make_gateway()
    identifier = await request_completion(gateway)

    server = await send_event(gateway, identifier, "select", key=NEIGHBOURS_KEY.text)

    assert (server.status, gateway.journal.outcomes) == (200, [])


async def test_another_user_cannot_report_an_outcome() -> None:
    gateway = make_gateway()
    identifier = await request_completion(gateway)
    colleague = make_principal(user_id=ALICE)

    request_id = RequestId(identifier.removeprefix("cmpl-"))
    gateway.plane.suggestions.report(colleague, request_id, OutcomeEvent.ACCEPTED, after_ms=1)

    assert gateway.journal.outcomes == []


async def test_another_service_key_cannot_report_an_outcome() -> None:
    gateway = make_gateway()
    requester, other_key = (make_principal(user_id=None, key_id=name) for name in ("one", "two"))
    suggestions, request_id = gateway.plane.suggestions, RequestId("request")
    suggestions.add(requester, request_id, "a\nb")

    suggestions.report(other_key, request_id, OutcomeEvent.SHOWN, after_ms=0)
    suggestions.report(requester, request_id, OutcomeEvent.ACCEPTED, after_ms=0)

    assert [
        (outcome.event, outcome.chars, outcome.lines) for outcome in gateway.journal.outcomes
    ] == [("accepted", 3, 2)]


async def test_a_busy_tenant_does_not_evict_suggestions_of_others() -> None:
    gateway = make_gateway()
    identifier = await request_completion(gateway)
    neighbour = make_principal(tenant_id=GLOBEX)
    for number in range(MAX_REMEMBERED + 1):
        gateway.plane.suggestions.add(neighbour, RequestId(str(number)), "x")

    await send_event(gateway, identifier, "view")

    assert len(gateway.journal.outcomes) == 1


async def test_the_number_of_remembered_suggestions_is_limited() -> None:
    gateway = make_gateway()
    identifier = await request_completion(gateway)
    principal = make_principal()
    for number in range(MAX_REMEMBERED):
        gateway.plane.suggestions.add(principal, RequestId(str(number)), "x")

    await send_event(gateway, identifier, "view")

    assert gateway.journal.outcomes == []


async def test_an_unauthenticated_event_is_rejected() -> None:
    server = await send_request(FakeGateway(), "/v1/events", {"type": "view"}, key=None)

    assert server.status == 401
