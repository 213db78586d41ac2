"""The Helm chart with a relay, and with a prober.

The relay serves a region without a control plane: it copies snapshots from the home region, and
sends usage records there. The prober requests completions through the ingress, as an editor does.
"""

import kubernetes_validate as validate
import pytest

from tests.functional.helm.rendered import FOREIGN, Document, render
from tests.functional.helm.security_checks import check_pods, check_rules, check_secrets

OLDEST = "1.30"  # the oldest supported version of Kubernetes
RELAYED: Document = {
    "region": "ap",
    "relay": {"enabled": True, "homeRedis": {"to": [{"ipBlock": {"cidr": "203.0.113.7/32"}}]}},
    "stores": {"content": "", "exports": "", "destroyedKeys": ""},
}
PROBED: Document = {
    "prober": {"enabled": True, "to": [{"ipBlock": {"cidr": "203.0.113.9/32"}}]},
    "podMonitor": {"enabled": True},
}


@pytest.mark.parametrize("changes", [RELAYED, PROBED], ids=["relay", "prober"])
def test_relay_and_prober_are_valid_and_restricted(changes: Document) -> None:
    rendered = render(changes=changes)

    for document in rendered.documents:
        if document["kind"] not in FOREIGN:
            validate.validate(document, OLDEST, strict=True)
    check_pods(rendered)
    check_rules(rendered)
    check_secrets(rendered)
    accounts = rendered.of_kind("ServiceAccount")
    used_accounts = {pod["spec"].get("serviceAccountName", "default") for _, pod in rendered.pods()}
    assert used_accounts - {"default"} <= set(accounts)


def test_a_relayed_region_has_no_control_plane_and_no_database_access() -> None:
    rendered = render(changes=RELAYED)

    names = {name for name, _ in rendered.pods()}
    assert {name.removeprefix("caret-").partition("-")[0] for name in names} == {
        "gateway",
        "engine",
        "relay",
    }
    assert "database-url" not in str(list(rendered.pods()))
    gateway = {
        variable["name"]: variable for variable in rendered.container("caret-gateway")["env"]
    }
    assert gateway["CARET_BEHIND_RELAY"]["value"] == "True"
    assert gateway["CARET_REGION"]["value"] == "ap"
    relay = rendered.of_kind("NetworkPolicy")["caret-relay"]["spec"]
    assert "ingress" not in relay
    assert relay["egress"][-1]["to"] == RELAYED["relay"]["homeRedis"]["to"]
    relay_variables = {variable["name"] for variable in rendered.container("caret-relay")["env"]}
    assert {"REDIS_URL_FILE", "CARET_HOME_REGION_REDIS_URL_FILE", "CARET_REGION"} <= relay_variables
    assert "CARET_ROOT_SECRET_FILE" not in relay_variables


def test_the_prober_has_only_its_own_secret_and_may_reach_the_ingress() -> None:
    rendered = render(changes=PROBED)
    (template,) = [pod for name, pod in rendered.pods() if name == "caret-prober"]

    (volume,) = [volume for volume in template["spec"]["volumes"] if volume["name"] == "secrets"]
    (source,) = volume["projected"]["sources"]
    assert source["secret"]["name"] == "caret-prober"
    (container,) = template["spec"]["containers"]
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    assert variables["CARET_GATEWAY_URL"] == "https://completions.example.com"
    policy = rendered.of_kind("NetworkPolicy")["caret-prober"]["spec"]
    assert policy["egress"][-1]["to"] == PROBED["prober"]["to"]
    ports = [port["containerPort"] for port in container["ports"]]
    assert ports == [int(variables["CARET_PROBE_PORT"])]
    assert [port["port"] for port in policy["ingress"][0]["ports"]] == ports
    assert "caret-prober" in rendered.of_kind("PodMonitor")


def test_relay_and_prober_are_off_by_default() -> None:
    assert not {name for name, _ in render().pods()} & {"caret-relay", "caret-prober"}


def test_relay_and_prober_secrets_come_from_the_external_store() -> None:
    store = {"externalSecrets": {"enabled": True, "store": {"name": "vault"}}}

    relayed = render(changes={**RELAYED, **store}).of_kind("ExternalSecret")
    probed = render(changes={**PROBED, **store}).of_kind("ExternalSecret")

    assert set(relayed) == {"caret", "caret-relay"}
    assert set(probed) == {"caret", "caret-owner", "caret-prober"}
