"""Faults with revoked keys fail if a gateway never rejects the keys, or no request ends."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos import noisy_neighbour, regions
from tests.chaos.client_log import Note
from tests.chaos.noisy_neighbour import KeyRevocation, TenantFault
from tests.chaos.regions import CutLink

SERVED = Note(at_s=0.0, tenant="acme", ending="stop", total_ms=40.0)
REJECTED = Note(at_s=0.0, tenant="acme", ending="revoked_api_key", total_ms=4.0)
REJECTED_OF_OTHERS = Note(at_s=0.0, tenant="globex", ending="revoked_api_key", total_ms=4.0)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_neighbour, "_FIRST_REQUESTS_TIMEOUT_S", 0.0)
    monkeypatch.setattr(regions, "_REFUSED_S", 0.0)


def _make_world(*notes: Note) -> Any:
    notebook = SimpleNamespace(read=lambda: list(notes), since=lambda _since_s: list(notes))
    return SimpleNamespace(notebook=notebook)


def _make_fault(kind: type[TenantFault], **fields: Any) -> Any:
    fault = kind("planted", hold_s=0.0, **fields)
    company: Any = SimpleNamespace(load=SimpleNamespace(tenant="acme"))
    fault._company = company
    return fault


FAULTS = {
    "key-revoked": lambda: _make_fault(KeyRevocation, _revoked_s=1.0),
    "cut-between-regions": lambda: _make_fault(CutLink, _are_keys_revoked=True),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("notes", [(), (SERVED, REJECTED_OF_OTHERS)], ids=["none", "served"])
def test_a_fault_fails_if_revoked_keys_are_never_rejected(
    name: str, notes: tuple[Note, ...]
) -> None:
    with pytest.raises(TimeoutError, match="revoked key"):
        FAULTS[name]().end(_make_world(*notes))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_if_a_revoked_key_is_rejected(name: str) -> None:
    FAULTS[name]().end(_make_world(SERVED, REJECTED))


@pytest.mark.parametrize("kind", [KeyRevocation, CutLink])
def test_a_fault_that_could_not_begin_ends_at_once(kind: type[TenantFault]) -> None:
    _make_fault(kind).end(_make_world())


def test_the_wait_for_the_tenants_requests_has_a_deadline() -> None:
    fault = _make_fault(KeyRevocation)

    with pytest.raises(TimeoutError, match="did not end"):
        fault._wait_for_requests(_make_world(SERVED), 2)
