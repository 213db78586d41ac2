"""Who tells which replicas a pool has: DNS, or the Kubernetes API where a pool says so."""

from collections.abc import Iterable

import aiohttp

from caret.composition.background_tasks import Run
from caret.foundation.environment import BadSetting
from inference.config import DataPlaneConfig
from inference.pipeline import DataPlane
from inference.pools.discovery.dns_resolver import DnsNames
from inference.pools.discovery.kubernetes_api import Account, KubernetesApi
from inference.pools.discovery.kubernetes_resolver import KubernetesNames
from inference.pools.discovery.pool_members import Membership
from inference.pools.discovery.replica_identity import PROBE_TEXT
from inference.pools.pool_config import Pool, Source
from inference.pools.vllm.identity import VllmIdentity


def membership_of(
    config: DataPlaneConfig, plane: DataPlane, session: aiohttp.ClientSession
) -> tuple[Membership, tuple[tuple[str, Run], ...]]:
    """It, and what is to run beside it, by name. Raises BadSetting."""
    router, load = plane.router, plane.admission.load
    watched = _watched(config, router.pools.by_name.values(), session)
    membership = Membership(
        router.pools,
        router.replicas,
        identities=VllmIdentity(session),
        resolvers={Source.DNS: DnsNames(config.resolver), Source.KUBERNETES: watched},
        token_ids={
            name: tuple(writer.tokens.encode(PROBE_TEXT)) for name, writer in plane.writers.items()
        },
    )
    membership.changed.append(lambda pool: load.resize(pool.name, len(pool.replicas)))
    watched.changed.append(membership.look)
    return membership, (("endpoints", watched.run),) if watched.names else ()


def _watched(
    config: DataPlaneConfig, pools: Iterable[Pool], session: aiohttp.ClientSession
) -> KubernetesNames:
    names = {
        pool.discover.host
        for pool in pools
        if pool.discover is not None and pool.source is Source.KUBERNETES
    }
    if names and not config.kubernetes_url:
        raise BadSetting(
            "CARET_KUBERNETES_API is not set and this is no pod; a pool has the source kubernetes."
        )
    account = Account(config.kubernetes_url, config.kubernetes_account)
    return KubernetesNames(KubernetesApi(session, account), names)
