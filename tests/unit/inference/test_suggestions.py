"""Reports of Tabby's agents about a suggestion become its outcome."""

import json
from typing import Any

import pytest

from caret.contracts.usage import OutcomeEvent
from caret.foundation.ids import RequestId
from inference.gateway.protocol.recent_suggestions import MAX_REMEMBERED
from tests.fakes.asgi import FakeServer
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import NEIGHBOURS_KEY, FakeGateway
from tests.fakes.http_gateway import ask
from tests.fakes.tenants import ALICE, GLOBEX, make_principal

SEGMENTS = {"segments": {"prefix": "a = ", "suffix": ""}}


def make_gateway() -> FakeGateway:
    return FakeGateway(engine=FakeEngine(chunks_of("first\n", "second")))


async def suggested(gateway: FakeGateway) -> str:
    """Return a completion's ID, as the agent knows it."""
    server = await ask(gateway, "/v1/completions", SEGMENTS)
    return str(json.loads(server.body)["id"])


async def tell(
    gateway: FakeGateway, identifier: str, kind: str, *, query: str = "", **more: Any
) -> FakeServer:
    body = {"type": kind, "completion_id": identifier, "choice_index": 0, "view_id": "v", **more}
    key = more.pop("key", None)
    asked = {"key": key} if key else {}
    return await ask(gateway, f"/v1/events{query}", body, **asked)


async def test_views_selections_and_dismissals_become_outcomes() -> None:
    gateway = make_gateway()
    identifier = await suggested(gateway)

    await tell(gateway, identifier, "view")
    await tell(gateway, identifier, "select", elapsed=386)
    await tell(gateway, identifier, "dismiss", elapsed=45.4)

    told = [(each.event, each.chars, each.after_ms) for each in gateway.journal.outcomes]
    assert told == [("shown", 12, 0), ("accepted", 12, 386), ("rejected", 12, 45)]
    (completion,) = gateway.journal.completions
    assert {each.request_id for each in gateway.journal.outcomes} == {completion.request_id}
    assert {each.user_id for each in gateway.journal.outcomes} == {completion.user_id}


@pytest.mark.parametrize(
    ("query", "more"), [("?select_kind=line", {}), ("", {"select_kind": "line"})]
)
async def test_a_line_that_was_accepted_is_a_part(query: str, more: dict[str, str]) -> None:
    gateway = make_gateway()

    await tell(gateway, await suggested(gateway), "select", query=query, **more)

    (outcome,) = gateway.journal.outcomes
    assert (outcome.event, outcome.chars) == ("partially_accepted", len("first"))


async def test_several_views_of_a_completion_count_once() -> None:
    gateway = make_gateway()
    identifier = await suggested(gateway)

    for _ in range(3):
        await tell(gateway, identifier, "view")

    assert len(gateway.journal.outcomes) == 1


@pytest.mark.parametrize("identifier", ["", "cmpl-unknown", "agent-1", "x" * 1000])
async def test_what_is_told_of_unknown_completions_is_dropped(identifier: str) -> None:
    gateway = make_gateway()

    server = await tell(gateway, identifier, "view")

    assert (server.status, gateway.journal.outcomes) == (200, [])


async def test_other_events_are_dropped() -> None:
    gateway = make_gateway()

    server = await tell(gateway, await suggested(gateway), "telemetry", elapsed=-1e300)

    assert (server.status, gateway.journal.outcomes) == (200, [])


async def test_a_neighbour_reports_nothing_of_it() -> None:
    gateway = make_gateway()
    identifier = await suggested(gateway)

    server = await tell(gateway, identifier, "select", key=NEIGHBOURS_KEY.text)

    assert (server.status, gateway.journal.outcomes) == (200, [])


async def test_a_colleague_reports_nothing_of_it() -> None:
    gateway = make_gateway()
    identifier = await suggested(gateway)
    colleague = make_principal(user_id=ALICE)

    request_id = RequestId(identifier.removeprefix("cmpl-"))
    gateway.plane.suggestions.report(colleague, request_id, OutcomeEvent.ACCEPTED, after_ms=1)

    assert gateway.journal.outcomes == []


async def test_of_services_only_the_one_that_asked_reports() -> None:
    gateway = make_gateway()
    asked, other = (make_principal(user_id=None, key_id=name) for name in ("one", "two"))
    suggestions, request_id = gateway.plane.suggestions, RequestId("request")
    suggestions.add(asked, request_id, "a\nb")

    suggestions.report(other, request_id, OutcomeEvent.SHOWN, after_ms=0)
    suggestions.report(asked, request_id, OutcomeEvent.ACCEPTED, after_ms=0)

    assert [(each.event, each.chars, each.lines) for each in gateway.journal.outcomes] == [
        ("accepted", 3, 2)
    ]


async def test_a_busy_neighbour_makes_nobody_forget() -> None:
    gateway = make_gateway()
    identifier = await suggested(gateway)
    neighbour = make_principal(tenant_id=GLOBEX)
    for number in range(MAX_REMEMBERED + 1):
        gateway.plane.suggestions.add(neighbour, RequestId(str(number)), "x")

    await tell(gateway, identifier, "view")

    assert len(gateway.journal.outcomes) == 1


async def test_what_is_remembered_is_bounded() -> None:
    gateway = make_gateway()
    identifier = await suggested(gateway)
    principal = make_principal()
    for number in range(MAX_REMEMBERED):
        gateway.plane.suggestions.add(principal, RequestId(str(number)), "x")

    await tell(gateway, identifier, "view")

    assert gateway.journal.outcomes == []


async def test_a_stranger_tells_nothing() -> None:
    server = await ask(FakeGateway(), "/v1/events", {"type": "view"}, key=None)

    assert server.status == 401
