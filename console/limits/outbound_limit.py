"""A limit for requests that wait for a tenant's systems: an identity provider, an audit sink, DNS.

A process handles 64 requests at once (caret.asgi). One tenant may use 8 of these request slots to
wait for its systems, and all tenants together may use half of them.
"""

from typing import Final

from caret.foundation.concurrency.bulkhead import Bulkhead

OUTBOUND_LIMIT: Final = Bulkhead(max_per_holder=8, max_total=32)
