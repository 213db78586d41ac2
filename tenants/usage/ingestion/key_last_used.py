"""Times of the last use of API keys."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

from tenants.models import ApiKey

LAST_USED_PRECISION: Final = timedelta(minutes=1)  # a busy key's row is updated once a minute


def record_key_use(uses: Iterable[tuple[uuid.UUID, datetime]]) -> None:
    """Record when API keys were last used, to the minute. Must run inside the tenant's scope.

    `uses` are pairs of a key's ID and the time of a request. One query, and one update for each key
    whose stored time is too old.
    """
    latest: dict[uuid.UUID, datetime] = {}
    for key_id, used_at in uses:
        latest[key_id] = max(used_at, latest.get(key_id, used_at))
    # Most stored times are recent enough. This query saves an update for each of these keys.
    stored_times = dict(ApiKey.objects.filter(id__in=latest).values_list("id", "last_used_at"))
    # Sorted by key, so that two workers cannot deadlock.
    for key_id, used_at in sorted(latest.items()):
        if not _is_stale(stored_times, key_id, used_at):
            continue
        # The condition again, because another transaction may have updated the row meanwhile.
        stale = Q(last_used_at=None) | Q(last_used_at__lt=used_at - LAST_USED_PRECISION)
        ApiKey.objects.filter(stale, id=key_id).update(last_used_at=used_at)


def _is_stale(
    stored_times: Mapping[uuid.UUID, datetime | None], key_id: uuid.UUID, used_at: datetime
) -> bool:
    """Return whether the stored time is too old; False for a key that does not exist here."""
    if key_id not in stored_times:
        return False
    last = stored_times[key_id]
    return last is None or last < used_at - LAST_USED_PRECISION
