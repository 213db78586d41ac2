"""Pool discovery: DNS, or the Kubernetes API for pools that are configured so."""

from collections.abc import Iterable

import aiohttp

from caret.composition.background_tasks import Run
from caret.foundation.environment import BadSetting
from inference.config import DataPlaneConfig
from inference.pipeline import DataPlane
from inference.pools.discovery.dns_resolver import DnsResolver
from inference.pools.discovery.kubernetes_api import KubernetesApi, ServiceAccount
from inference.pools.discovery.kubernetes_resolver import KubernetesResolver
from inference.pools.discovery.pool_members import PoolMembers
from inference.pools.discovery.replica_identity import PROBE_TEXT
from inference.pools.pool_config import DiscoverySource, Pool
from inference.pools.vllm.identity import VllmIdentity


def membership_of(
    config: DataPlaneConfig, plane: DataPlane, session: aiohttp.ClientSession
) -> tuple[PoolMembers, tuple[tuple[str, Run], ...]]:
    """Return the pool members and the named background tasks that they need.

    Raises BadSetting.
    """
    router, load = plane.router, plane.admission.load_shedder
    watched = _watched(config, router.pools.by_name.values(), session)
    membership = PoolMembers(
        router.pools,
        router.replicas,
        identities=VllmIdentity(session),
        resolvers={
            DiscoverySource.DNS: DnsResolver(config.dns_resolver),
            DiscoverySource.KUBERNETES: watched,
        },
        token_ids={
            name: tuple(writer.tokenizer.encode(PROBE_TEXT))
            for name, writer in plane.prompt_writers.items()
        },
    )
    membership.changed.append(lambda pool: load.set_num_replicas(pool.name, len(pool.replicas)))
    watched.changed.append(membership.request_reconcile)
    return membership, (("endpoints", watched.run),) if watched.names else ()


def _watched(
    config: DataPlaneConfig, pools: Iterable[Pool], session: aiohttp.ClientSession
) -> KubernetesResolver:
    names = {
        pool.discover.host
        for pool in pools
        if pool.discover is not None and pool.source is DiscoverySource.KUBERNETES
    }
    if names and not config.kubernetes_url:
        raise BadSetting(
            "A pool has the source kubernetes: set CARET_KUBERNETES_API, or run in a pod."
        )
    account = ServiceAccount(config.kubernetes_url, config.kubernetes_service_account_dir)
    return KubernetesResolver(KubernetesApi(session, account), names)
