"""A limit for requests that wait for systems of a tenant: identity provider, sink or DNS.

Such requests of one tenant may occupy 8 of the console's 64 request slots (caret.asgi), and those
of all tenants half of them.
"""

from typing import Final

from caret.foundation.concurrency.bulkhead import Bulkhead

OUTWARD: Final = Bulkhead(max_each=8, max_all=32)
