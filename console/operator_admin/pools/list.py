"""Pools and their replicas: load, health and actions."""

from collections.abc import Iterable
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from console.layout.lists.pagination import wants_csv
from console.operator_admin.overview import build_installation_context, read_drains_if_reachable
from console.operator_admin.pools.csv_files import pools_csv
from console.operator_admin.pools.presenters import changes_of
from console.operator_admin.site import operator_required, render_operator_page
from tenants.base.errors import DomainError
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.added_replicas import AddedReplicaRecord, AddedReplicas, read_additions
from tenants.fleet.pools.pool_status import PoolStatus
from tenants.fleet.pools.scraping.installation_status import read_installation_status

# Messages by the parameter `done`, which a change adds to the URL of this page.
_DONE: Final = {
    "drained": gettext_lazy(
        "The replica is draining. Within a second, gateways stop sending it new requests. "
        "Requests in progress finish normally."
    ),
    "added": gettext_lazy(
        "Replica added. Gateways check it first, then send it requests. If it does not "
        "join the pool within ten seconds, the reason is shown below."
    ),
    "removed": gettext_lazy(
        "Replica removed. Within a second, gateways stop sending it new requests."
    ),
    "undrained": gettext_lazy(
        "Replica undrained. Gateways send it requests again within a second."
    ),
}


@require_GET
@operator_required
def pools(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    installation = read_installation_status(now=timezone.now())
    drains, additions = read_drains_if_reachable(), _read_additions_if_reachable()
    changes = changes_of(drains, additions)
    if wants_csv(request):
        is_incomplete = drains is None or additions is None
        return pools_csv(request, installation, None if is_incomplete else changes)
    reported_names = {replica.name for pool in installation.pools for replica in pool.replicas}
    context = {
        "title": gettext_lazy("Pools"),
        "done": _DONE.get(request.GET.get("done", "")),
        "drains": drains,
        "additions": additions,
        "pools": [(pool, _added_replicas(pool, additions)) for pool in installation.pools],
        "changes": changes,
        "pending_additions": _pending_additions(additions, installation.pools),
        # Drained replicas that no gateway reports in a pool. Operators must be able to undrain
        # them, too.
        "unreported_drains": [
            change
            for name, change in (drains.drained if drains else {}).items()
            if name not in reported_names
        ],
        **build_installation_context(installation),
    }
    return render_operator_page(request, "pools/list.html", context)


def _read_additions_if_reachable() -> AddedReplicas | None:
    """Return the replicas that operators added; None if Redis is unreachable."""
    try:
        return read_additions(connect_to_redis())
    except DomainError:
        return None


def _added_replicas(pool: PoolStatus, additions: AddedReplicas | None) -> frozenset[str]:
    """Return the names of the replicas that operators added to the pool."""
    added = additions.replicas if additions else {}  # by pool and replica
    return frozenset(replica for pool_name, replica in added if pool_name == pool.name)


def _pending_additions(
    additions: AddedReplicas | None, pools: Iterable[PoolStatus]
) -> list[AddedReplicaRecord]:
    """Return the added replicas that no gateway reports, such as replicas added just now."""
    reported: set[tuple[str, str]] = set()  # pool and replica
    for pool in pools:
        reported.update((pool.name, replica.name) for replica in pool.replicas)
        reported.update((pool.name, replica.name) for replica in pool.rejected)
    added = additions.replicas if additions else {}  # by pool and replica
    return [added[pool_and_replica] for pool_and_replica in sorted(added.keys() - reported)]
