"""Logging of a tenant's failure by a task that then continues with the other tenants."""

from types import TracebackType

import structlog
from celery.exceptions import SoftTimeLimitExceeded

from caret.foundation.ids import TenantId

logger = structlog.get_logger(__name__)


class FailureLog:
    """A `with` block whose errors are logged as `event`, with the tenant and further fields.

    One tenant's failure must not stop the others, and storages raise exceptions of their own. The
    message of an error is not logged, because it may quote content. SoftTimeLimitExceeded is
    raised, because no time is left for the other tenants.
    """

    def __init__(self, event: str, *, tenant_id: TenantId, **fields: str) -> None:
        self._event = event
        self._fields = {"tenant_id": tenant_id, **fields}

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        """Return True if the error was logged. Otherwise, Python raises it again."""
        if not isinstance(error, Exception) or isinstance(error, SoftTimeLimitExceeded):
            return False
        logger.error(self._event, error=type(error).__name__, **self._fields)
        return True
