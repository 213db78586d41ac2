"""Requests that wait for what a tenant has named (an identity provider, a sink, a domain's DNS)
hold but a few of the console's places: see caret.asgi, which has 64."""

from typing import Final

from caret.foundation.concurrency.bulkhead import Bulkhead

OUTWARD: Final = Bulkhead(max_each=8, max_all=32)
