"""Pools and their replicas: what they do, how well they are, and what may be done with them."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from console.operators.overview import known_drains, of_installation
from console.operators.site import for_operators, page
from tenants.operators.accounts import OperatorView
from tenants.pools.overview import read_installation

_DONE: Final = {
    "drained": gettext_lazy(
        "The replica is drained: gateways ask nothing new of it within a second, and what is under"
        " way there ends as it would."
    ),
    "returned": gettext_lazy("The replica is back: gateways ask it again within a second."),
}


@require_GET
@for_operators
def pools(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    installation = read_installation(now=timezone.now())
    drains = known_drains()
    known = {replica.name for pool in installation.pools for replica in pool.replicas}
    context = {
        "title": "Pools",
        "done": _DONE.get(request.GET.get("done", "")),
        "drains": drains,
        # Drained, and in no gateway's catalogue: to be returned all the same.
        "strangers": [
            change
            for name, change in (drains.drained if drains else {}).items()
            if name not in known
        ],
        **of_installation(installation),
    }
    return page(request, "pools.html", context)
