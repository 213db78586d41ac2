"""A receiver of a budget's alerts that holds on to who calls it."""

import socket
from contextlib import suppress
from datetime import UTC, datetime
from threading import Event, Thread

import pytest

from tenants.billing.budgets import webhook

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_a_receiver_that_drips_holds_nobody_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "_TOTAL_S", 0.3)
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(webhook, "_reach", lambda _: ours)
    ended = Event()

    def drip() -> None:
        with suppress(OSError):
            while not ended.wait(0.05):
                theirs.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    thread = Thread(target=drip)
    thread.start()
    try:
        with pytest.raises(webhook.NotDelivered):
            webhook.send("http://receiver.invalid/", webhook.Webhook("1", ("t", "b"), {}), now=NOW)
    finally:
        ended.set()
        thread.join()
        theirs.close()
