"""The rendered chart is valid for Kubernetes and restrictive, and contradictory values are
rejected."""

import tomllib
from typing import Any

import helm_python
import kubernetes_validate as validate
import pytest

from caret.composition.config import KUBERNETES_ACCOUNT_DIR
from inference.pools.discovery.kubernetes_api import ServiceAccount
from inference.pools.pool_config import DiscoverySource, read_pool_config
from tests.functional.helm.rendered import FOREIGN, SIZES, Document, Rendered, render
from tests.functional.helm.security_checks import check_pods, check_rules, check_secrets

VERSIONS = ("1.30", validate.latest_version())  # the oldest supported version and the newest
ENGINE_PORTS = [8000, 5557, 5558]  # HTTP, KV events, and the replay of missed KV events
GATEWAYS = {"app.kubernetes.io/component": "gateway"}


@pytest.fixture(scope="module", params=SIZES)
def rendered(request: pytest.FixtureRequest) -> Rendered:
    return render(request.param)


@pytest.fixture(scope="module")
def million_developers_chart() -> Rendered:
    return render("a million developers")


@pytest.mark.parametrize("version", VERSIONS)
def test_all_documents_are_valid(rendered: Rendered, version: str) -> None:
    native_documents = [
        document for document in rendered.documents if document["kind"] not in FOREIGN
    ]

    for document in native_documents:
        validate.validate(document, version, strict=True)
    assert len(native_documents) > 30


def test_a_misspelt_field_is_not_valid() -> None:
    gateway = render().of_kind("StatefulSet")["caret-gateway"]
    gateway["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}

    with pytest.raises(validate.ValidationError):
        validate.validate(gateway, VERSIONS[0], strict=True)


def test_pods_are_unprivileged_read_only_and_without_tokens(rendered: Rendered) -> None:
    assert len(dict(rendered.pods())) > 10
    check_pods(rendered)


def test_serving_pods_have_disruption_budgets(rendered: Rendered) -> None:
    selectors = [
        budget["spec"]["selector"]["matchLabels"].items()
        for budget in rendered.of_kind("PodDisruptionBudget").values()
    ]
    serving = {"gateway", "console", "engine"}

    checked = set()
    for name, template in rendered.pods():
        labels = template["metadata"]["labels"]
        if (component := labels["app.kubernetes.io/component"]) in serving:
            checked.add(component)
            assert any(selector <= labels.items() for selector in selectors), name
    assert checked == serving


def test_a_default_deny_policy_covers_every_pod(rendered: Rendered) -> None:
    default_policy = rendered.of_kind("NetworkPolicy")["caret-nothing-else"]["spec"]

    assert default_policy["policyTypes"] == ["Ingress", "Egress"]
    assert not {"ingress", "egress"} & set(default_policy)
    instance = default_policy["podSelector"]["matchLabels"].items()
    for name, template in rendered.pods():
        assert instance <= template["metadata"]["labels"].items(), name


def test_only_gateways_can_reach_engines(rendered: Rendered) -> None:
    (rule,) = rendered.of_kind("NetworkPolicy")["caret-engine"]["spec"]["ingress"]

    (peer,) = rule["from"]
    assert set(peer) == {"podSelector"}
    assert GATEWAYS.items() <= peer["podSelector"]["matchLabels"].items()
    assert [port["port"] for port in rule["ports"]] == ENGINE_PORTS
    assert "egress" not in rendered.of_kind("NetworkPolicy")["caret-engine"]["spec"]


def test_no_network_rule_allows_all_peers(rendered: Rendered) -> None:
    check_rules(rendered)


def test_only_migrations_and_the_partitions_job_know_the_owner_database_url(
    rendered: Rendered,
) -> None:
    holders = {name for name, pod in rendered.pods() if "owner-database-url" in str(pod)}

    assert holders == {"caret-migrate", "caret-partitions"}


def test_no_secret_is_a_plain_value(rendered: Rendered) -> None:
    check_secrets(rendered)


def test_gateways_can_read_the_rendered_pools_file(rendered: Rendered, tmp_path: Any) -> None:
    path = tmp_path / "pools.toml"
    path.write_text(rendered.of_kind("ConfigMap")["caret-pools"]["data"]["pools.toml"])

    pools = read_pool_config(path)

    engines = {name for name in rendered.of_kind("StatefulSet") if name.startswith("caret-engine-")}
    assert {f"caret-engine-{name}" for name in pools.by_name} == engines
    for pool in tomllib.loads(path.read_text())["pools"]:
        args = rendered.container(f"caret-engine-{pool['name']}")["args"]
        assert f"--max-model-len={pool['max_context_tokens']}" in args
        assert f"--served-model-name={pool['model']}" in args


def test_streams_have_time_to_end(rendered: Rendered) -> None:
    tested = set()
    for name, template in rendered.pods():
        spec = template["spec"]
        (container, *_) = spec["containers"]
        pre_stop_s = (
            container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds")
        )
        if name.startswith("caret-engine-"):
            (flag,) = [arg for arg in container["args"] if arg.startswith("--shutdown-timeout=")]
            drain_s = int(flag.partition("=")[2])
        elif name == "caret-gateway":
            (drain_s,) = [
                int(variable["value"])
                for variable in container["env"]
                if variable["name"] == "CARET_DRAIN_TIMEOUT_S"
            ]
        else:
            continue
        tested.add(name)
        assert drain_s > 0
        # Kubernetes kills the pod after the grace period, which begins with the preStop hook.
        assert pre_stop_s + drain_s < spec["terminationGracePeriodSeconds"], name
    assert "caret-gateway" in tested
    assert len(tested) > 1


def test_scaling_down_keeps_undelivered_usage() -> None:
    spec = render().of_kind("StatefulSet")["caret-gateway"]["spec"]

    retained = {"whenScaled": "Retain", "whenDeleted": "Retain"}
    assert spec["persistentVolumeClaimRetentionPolicy"] == retained


def test_the_gateway_allows_the_console_only_over_tls() -> None:
    rendered = render(changes={"console": {"host": "console.example.com"}})

    env = {variable["name"]: variable for variable in rendered.container("caret-gateway")["env"]}
    assert env["CARET_ALLOWED_ORIGINS"]["value"] == "https://console.example.com"


def test_the_million_developers_profile_has_the_replicas_of_scaling_md(
    million_developers_chart: Rendered,
) -> None:
    fast, quality = (
        million_developers_chart.of_kind("ScaledObject")[f"caret-engine-{pool}"]["spec"]
        for pool in ("fast", "quality")
    )

    # Both lines repeat the numbers of platform/docs/scaling.md.
    assert (fast["minReplicaCount"], fast["maxReplicaCount"]) == (50, 80)
    assert (quality["minReplicaCount"], quality["maxReplicaCount"]) == (10, 20)
    limits = million_developers_chart.container("caret-engine-fast")["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == 1


def test_a_tenants_own_pool_has_dedicated_nodes(million_developers_chart: Rendered) -> None:
    (template,) = [
        pod for name, pod in million_developers_chart.pods() if name == "caret-engine-fast-acme"
    ]
    (own,) = [
        pool
        for pool in tomllib.loads(
            million_developers_chart.of_kind("ConfigMap")["caret-pools"]["data"]["pools.toml"]
        )["pools"]
        if pool["name"] == "fast-acme"
    ]

    assert own["tenants"] == ["acme"]
    assert template["spec"]["nodeSelector"] == {"caret.example.com/tenant": "acme"}
    assert template["spec"]["tolerations"]


def test_egress_to_the_internet_excludes_private_networks(rendered: Rendered) -> None:
    blocks = [
        peer["ipBlock"]
        for policy in rendered.of_kind("NetworkPolicy").values()
        for rule in policy["spec"].get("egress", ())
        for peer in rule.get("to", ())
        if "ipBlock" in peer
    ]

    assert blocks
    for block in blocks:
        # The second network contains the metadata service of most clouds.
        assert {"10.0.0.0/8", "169.254.0.0/16"} <= set(block["except"])


def test_only_prometheus_can_reach_control_plane_metrics() -> None:
    rendered = render(changes={"podMonitor": {"enabled": True}})
    monitoring = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "mon"}}}]
    policies = render(changes={"network": {"monitoring": monitoring}}).of_kind("NetworkPolicy")

    for name in ("caret-console", "caret-beat"):
        ports = rendered.container(name)["ports"]
        (port,) = [port["containerPort"] for port in ports if port["name"] == "metrics"]
        variables = {
            variable["name"]: variable.get("value") for variable in rendered.container(name)["env"]
        }
        assert variables["CARET_CONTROL_PLANE_METRICS_PORT"] == str(port)
        (rule,) = [
            rule
            for rule in policies[name]["spec"]["ingress"]
            if {"protocol": "TCP", "port": port} in rule["ports"]
        ]
        assert rule["from"] == monitoring
        selected = rendered.of_kind("PodMonitor")[name]["spec"]["selector"]["matchLabels"].items()
        (template,) = [pod for pod_name, pod in rendered.pods() if pod_name == name]
        assert selected <= template["metadata"]["labels"].items()


KUBERNETES_DISCOVERY: Document = {
    "pools": {"fast": {"source": "kubernetes", "kvEvents": True}},
    "network": {"kubernetesApi": {"to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]}},
}


def test_only_gateways_may_read_endpoint_slices() -> None:
    rendered = render(changes=KUBERNETES_DISCOVERY)

    (role,) = rendered.of_kind("Role").values()
    (binding,) = rendered.of_kind("RoleBinding").values()
    assert role["rules"] == [
        {
            "apiGroups": ["discovery.k8s.io"],
            "resources": ["endpointslices"],
            "verbs": ["get", "list", "watch"],
        }
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "caret-gateway", "namespace": "caret"}
    ]
    holders = {name for name, pod in rendered.pods() if "serviceAccountToken" in str(pod)}
    assert holders == {"caret-gateway"}
    for document in (role, binding):
        validate.validate(document, VERSIONS[0], strict=True)


def test_gateways_reach_the_kubernetes_api_only_if_a_pool_needs_it() -> None:
    to_api = {
        "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
        "ports": [{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}],
    }
    watching = render(changes=KUBERNETES_DISCOVERY).of_kind("NetworkPolicy")
    without_discovery = render(changes={"network": KUBERNETES_DISCOVERY["network"]})

    allowed = {
        name for name, policy in watching.items() if to_api in policy["spec"].get("egress", ())
    }
    assert allowed == {"caret-gateway"}
    assert (
        to_api not in without_discovery.of_kind("NetworkPolicy")["caret-gateway"]["spec"]["egress"]
    )
    assert not without_discovery.of_kind("Role", "RoleBinding")
    assert not any("serviceAccountToken" in str(pod) for _, pod in without_discovery.pods())


def test_a_pools_endpoints_come_from_its_service(tmp_path: Any) -> None:
    rendered, path = render(changes=KUBERNETES_DISCOVERY), tmp_path / "pools.toml"
    path.write_text(rendered.of_kind("ConfigMap")["caret-pools"]["data"]["pools.toml"])

    pool = read_pool_config(path).by_name["fast"]

    assert pool.discover is not None
    assert (pool.source, pool.replicas) == (DiscoverySource.KUBERNETES, ())
    account = ServiceAccount("https://10.0.0.1", tmp_path)
    url, query = account.build_slices_request(pool.discover.host)
    service = query["labelSelector"].partition("=")[2]
    assert service in rendered.of_kind("Service")
    assert "/namespaces/caret/" in url
    assert pool.discover.with_address("10.1.2.3").kv_events == "tcp://10.1.2.3:5557"


def test_the_token_is_mounted_where_gateways_read_it() -> None:
    (template,) = [
        pod for name, pod in render(changes=KUBERNETES_DISCOVERY).pods() if name == "caret-gateway"
    ]
    (volume,) = [volume for volume in template["spec"]["volumes"] if volume["name"] == "account"]
    (mount,) = [
        mount
        for mount in template["spec"]["containers"][0]["volumeMounts"]
        if mount["name"] == "account"
    ]

    files = str(volume["projected"]["sources"])
    assert mount["mountPath"] == KUBERNETES_ACCOUNT_DIR
    assert all(f"'path': '{name}'" in files for name in ("token", "ca.crt", "namespace"))


def test_secrets_come_from_the_external_store_if_configured() -> None:
    rendered = render(changes={"externalSecrets": {"enabled": True, "store": {"name": "vault"}}})

    secrets = rendered.of_kind("ExternalSecret")
    assert set(secrets) == {"caret", "caret-owner"}
    for secret in secrets.values():
        assert secret["spec"]["secretStoreRef"]["name"] == "vault"
    assert not rendered.of_kind("Secret")


# For each case: the contradictory values, and a part of the error message that names the value.
REFUSED: dict[str, tuple[Document, str]] = {
    "no host": ({"gateway": {"host": ""}}, "gateway.host"),
    "a grace period that is too short for streams": (
        {"gateway": {"terminationGraceS": 30}},
        "gateway.terminationGraceS",
    ),
    "no pool of a tier": (
        {"pools": {"quality": {"tenants": ["acme"]}}},
        "none for the tier quality",
    ),
    "two shared pools of one tier": ({"pools": {"quality": {"tier": "fast"}}}, "both shared pools"),
    "maxReplicas below replicas": (
        {"pools": {"fast": {"replicas": 2, "maxReplicas": 1}}},
        "pools.fast.maxReplicas is less than its replicas",
    ),
    "a flag that logs prompts": (
        {"pools": {"fast": {"args": ["--enable-log-requests"]}}},
        "pools.fast.args",
    ),
    "a connector that ignores the cache salt": (
        {"pools": {"fast": {"kvTier": {"connector": "LMCacheConnectorV1"}}}},
        "kvTier",
    ),
    "a Kubernetes API that gateways may not reach": (
        {"pools": {"fast": {"source": "kubernetes"}}},
        "network.kubernetesApi.to",
    ),
    "replicas without speculation beside others without it": (
        {"pools": {"quality": {"plainReplicas": 1}}},
        "pools.quality has plainReplicas, but its other replicas do not speculate",
    ),
    "plainReplicas in a pool whose source does not name its replicas": (
        KUBERNETES_DISCOVERY | {"pools": {"fast": {"source": "kubernetes", "plainReplicas": 1}}},
        "source kubernetes, which cannot tell these replicas from the others",
    ),
    "a relay without a Redis to connect to": ({"relay": {"enabled": True}}, "relay.homeRedis.to"),
    "a prober without a peer to connect to": ({"prober": {"enabled": True}}, "prober.to"),
    "an ingress that allows all peers": ({"network": {"ingress": []}}, "/network/ingress"),
    "an unknown value": ({"gatewayy": {}}, "gatewayy"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_contradictory_values_are_refused_with_their_name(case: str) -> None:
    changes, message = REFUSED[case]

    with pytest.raises(helm_python.HelmError) as exc_info:
        render(changes=changes)

    assert message in str(exc_info.value)
