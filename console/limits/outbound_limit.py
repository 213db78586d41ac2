"""A limit for requests that wait for systems of a tenant: identity provider, sink or DNS.

Such requests may occupy only a few of the console's 64 request slots (caret.asgi).
"""

from typing import Final

from caret.foundation.concurrency.bulkhead import Bulkhead

OUTWARD: Final = Bulkhead(max_each=8, max_all=32)
