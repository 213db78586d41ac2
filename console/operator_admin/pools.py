"""Pools and their replicas: load, health and actions."""

from collections.abc import Iterable
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from console.layout.lists.pagination import wants_csv
from console.operator_admin.change_log import changes_of
from console.operator_admin.overview import known_drains, of_installation
from console.operator_admin.pool_exports import file_of
from console.operator_admin.site import operator_required, page
from tenants.base.errors import DomainError
from tenants.base.redis_connection import connect
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.added_replicas import AddedReplicaRecord, AddedReplicas, read_additions
from tenants.fleet.pools.pool_status import PoolStatus
from tenants.fleet.pools.scraping.installation_status import read_installation

_DONE: Final = {
    "drained": gettext_lazy(
        "The replica is draining. Within a second, gateways send it no new requests; "
        "requests in progress finish normally."
    ),
    "added": gettext_lazy(
        "Replica added. Gateways check it first, then send it requests. If it does not "
        "join the pool within ten seconds, the reason is shown below."
    ),
    "removed": gettext_lazy("Replica removed. Within a second, gateways send it no new requests."),
    "returned": gettext_lazy("Replica undrained. Gateways send it requests again within a second."),
}


@require_GET
@operator_required
def pools(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    installation = read_installation(now=timezone.now())
    drains, additions = known_drains(), _known_additions()
    changes = changes_of(drains, additions)
    if wants_csv(request):
        away = drains is None or additions is None
        return file_of(request, installation, None if away else changes)
    known = {replica.name for pool in installation.pools for replica in pool.replicas}
    context = {
        "title": "Pools",
        "done": _DONE.get(request.GET.get("done", "")),
        "drains": drains,
        "additions": additions,
        "pools": [(pool, _added_to(pool, additions)) for pool in installation.pools],
        "changes": changes,
        "waiting": _pending_additions(additions, installation.pools),
        # Drained replicas that no gateway lists. They must be restorable too.
        "strangers": [
            change
            for name, change in (drains.drained if drains else {}).items()
            if name not in known
        ],
        **of_installation(installation),
    }
    return page(request, "pools.html", context)


def _known_additions() -> AddedReplicas | None:
    """Return the added replicas; None if Redis is unreachable."""
    try:
        return read_additions(connect())
    except DomainError:
        return None


def _added_to(pool: PoolStatus, additions: AddedReplicas | None) -> frozenset[str]:
    held = additions.held if additions else {}
    return frozenset(replica for name, replica in held if name == pool.name)


def _pending_additions(
    additions: AddedReplicas | None, pools: Iterable[PoolStatus]
) -> list[AddedReplicaRecord]:
    """Return added replicas that no gateway reports: it has not seen them, or none answers."""
    told = {
        (pool.name, name)
        for pool in pools
        for name in (
            *(replica.name for replica in pool.replicas),
            *(refused.name for refused in pool.rejected),
        )
    }
    held = additions.held if additions else {}
    return [held[key] for key in sorted(held.keys() - told)]
