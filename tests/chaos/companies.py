"""Companies in the control plane, whose users send requests.

Modules that need Django are imported inside functions, because `environment.world` sets up Django.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.chaos.clients import TenantLoad

if TYPE_CHECKING:
    from tenants.identity.api_keys.operations import CreatedKey
    from tests.fixtures.companies import Company

# Editors for each request a second: enough to continue while some of them wait for seconds.
_EDITORS_PER_RATE: Final = 2.0


@dataclass(frozen=True, slots=True)
class ChaosCompany:
    company: "Company"
    keys: "tuple[CreatedKey, ...]"  # one for each of its users
    load: TenantLoad

    def revoke_keys(self) -> None:
        _reconnect()
        from django.utils import timezone

        from tenants.identity.api_keys.operations import revoke_key

        for key in self.keys:
            revoke_key(
                actor=self.company.platform,
                lookup_id=key.key.lookup_id,
                reason="chaos",
                now=timezone.now(),
            )

    def limit_requests(self, *, per_minute: int, burst: int) -> None:
        """Limit the requests of the whole company."""
        _reconnect()
        from django.utils import timezone
        from msgspec.structs import replace

        from caret.contracts.policy import PolicyLimits, RateLimit
        from tenants.policy.document import DEFAULT_POLICY, serialize_policy
        from tenants.policy.operations import set_policy

        limits = PolicyLimits(tenant=RateLimit(per_minute=per_minute, burst=burst))
        document = serialize_policy(replace(DEFAULT_POLICY, limits=limits))
        actor, now = self.company.platform, timezone.now()
        set_policy(actor=actor, document=document, reason="chaos", now=now)


def new_chaos_company(name: str, *, rate: float) -> ChaosCompany:
    """Make a company of five users with a key each.

    Its default policy allows each user 20 requests a second.
    """
    from tests.fixtures.companies import ACME_PEOPLE, make_company, make_key

    _reconnect()
    company = make_company(name, ACME_PEOPLE)
    keys = tuple(make_key(company, person) for person in company.people.values())
    num_editors = max(len(keys), math.ceil(rate * _EDITORS_PER_RATE))
    texts = tuple(key.text for key in keys)
    return ChaosCompany(company, keys, TenantLoad(company.tenant_id, texts, rate, num_editors))


def _reconnect() -> None:
    """Close Django's connections, so that it opens new ones.

    Postgres may have been killed since the last use.
    """
    from django.db import connections

    connections.close_all()
