"""Requests of Tabby's agent other than completions: health, settings and events.

After any error the agent checks health, and shows "disconnected" if the health check fails. So the
health check succeeds even if no pool is available. The agent expects the version of a Tabby server,
and rejects versions that are newer than those it knows.
"""

from typing import Final
from urllib.parse import parse_qs

import msgspec

from caret.contracts.policy import Tier
from caret.contracts.usage import OutcomeEvent
from caret.foundation.ids import RequestId
from inference.consumers.dialects.models_list import AuthenticatedJsonConsumer
from inference.consumers.dialects.tabby_completions import ID_PREFIX
from inference.consumers.http.request_bodies import decode
from inference.gateway.protocol.outcome_reports import MAX_NUMBER


class Version(msgspec.Struct, frozen=True):
    git_describe: str = "v0.31.2"  # the Tabby server that we emulate
    build_date: str = ""
    build_timestamp: str = ""
    git_sha: str = ""


class TabbyHealth(msgspec.Struct, frozen=True):
    """The health response. It has all fields, since the agent crashes if one is missing."""

    model: str  # "": the policy allows no model of the fast tier
    chat_model: str | None  # None: the policy allows no model of the quality tier
    # The following values are the same for every gateway. They do not describe its hardware.
    device: str = "cuda"
    arch: str = ""
    cpu_info: str = ""
    cpu_count: int = 1
    cuda_devices: list[str] = []
    version: Version = Version()
    webserver: bool = True


class TabbyHealthConsumer(AuthenticatedJsonConsumer):
    methods = (b"GET", b"POST")

    def build_response(self, _body: bytes) -> TabbyHealth:
        snapshot, selector = self.principal.snapshot, self.plane.pool_selector
        return TabbyHealth(
            model=selector.find_default_model(snapshot, Tier.FAST) or "",
            chat_model=selector.find_default_model(snapshot, Tier.QUALITY),
        )


class ServerSetting(msgspec.Struct, frozen=True):
    disable_client_side_telemetry: bool = True  # keeps plugins from sending usage to their vendor


class ServerSettingConsumer(AuthenticatedJsonConsumer):
    def build_response(self, _body: bytes) -> ServerSetting:
        return ServerSetting()


class EventBody(msgspec.Struct, frozen=True):
    type: str  # view, select or dismiss; others are ignored
    completion_id: str = ""  # ID_PREFIX and the request ID
    select_kind: str | None = None  # `line`: only the first line was accepted
    elapsed: float | None = None  # milliseconds since the suggestion was shown


class EventAck(msgspec.Struct, frozen=True):
    """The response to an event. It is empty, because the agent ignores it."""


_OUTCOMES: Final = {
    "view": OutcomeEvent.SHOWN,
    "select": OutcomeEvent.ACCEPTED,
    "dismiss": OutcomeEvent.REJECTED,
}
_decoder: Final = msgspec.json.Decoder(EventBody)


class EventsConsumer(AuthenticatedJsonConsumer):
    """`POST /v1/events`: outcomes of suggestions.

    Other events, and events of unknown completions, are ignored without an error: after an error,
    the agent would check health.
    """

    methods = (b"POST",)
    max_body_bytes = 64 * 1024

    def build_response(self, body: bytes) -> EventAck:
        event = decode(_decoder, body)
        outcome = _OUTCOMES.get(event.type)
        if outcome is OutcomeEvent.ACCEPTED and "line" in (
            event.select_kind,
            self._read_select_kind_of_query(),
        ):
            outcome = OutcomeEvent.PARTIALLY_ACCEPTED
        if outcome is not None:
            request_id = RequestId(event.completion_id.removeprefix(ID_PREFIX))
            elapsed_ms = round(min(event.elapsed or 0.0, MAX_NUMBER))  # fits into the database
            self.plane.suggestions.report(self.principal, request_id, outcome, after_ms=elapsed_ms)
        return EventAck()

    def _read_select_kind_of_query(self) -> str:
        """Return `select_kind`, which the agent also writes into the query string; "" if absent."""
        query: str = self.scope["query_string"].decode("latin-1")
        return parse_qs(query).get("select_kind", [""])[0]
