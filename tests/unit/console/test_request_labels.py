"""Every trigger and every protocol of a request has a name on the request's page."""

import re
from pathlib import Path

import inference.consumers
from caret.contracts.policy import Trigger
from console.usage_filters.request_labels import PROTOCOLS, TRIGGERS

# Each dialect of HTTP passes the name of its protocol in this way.
_PROTOCOL = re.compile(r'protocol="(\w+)"')


def test_each_trigger_has_a_name() -> None:
    assert set(TRIGGERS) == set(Trigger)


def test_each_protocol_has_a_name() -> None:
    consumers = Path(inference.consumers.__file__).parent
    protocols = {
        name for file in consumers.rglob("*.py") for name in _PROTOCOL.findall(file.read_text())
    }

    # The stream protocol is no dialect: inference/gateway/protocol/connection.py names it.
    assert set(PROTOCOLS) == {"stream", *protocols}
