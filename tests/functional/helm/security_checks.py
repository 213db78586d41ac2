"""Security checks that hold for everything that the chart renders, whatever its values."""

from tests.functional.helm.rendered import Rendered


def check_pods(rendered: Rendered) -> None:
    """Check that every pod is unprivileged and has resource limits.

    It must not run as root, write to its root file system or have a service account token.
    """
    pods = dict(rendered.pods())
    assert pods
    for name, template in pods.items():
        spec = template["spec"]
        containers = [*spec["containers"], *spec.get("initContainers", ())]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] > 0, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in containers:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True, name
            assert context["allowPrivilegeEscalation"] is False, name
            assert context["capabilities"] == {"drop": ["ALL"]}, name
            assert {"requests", "limits"} <= set(container["resources"]), name


def check_rules(rendered: Rendered) -> None:
    """Check that no network rule allows all peers or all ports."""
    policies = rendered.of_kind("NetworkPolicy")
    assert policies
    for name, policy in policies.items():
        # Kubernetes' schema accepts any text as a type, so a misspelt type would be valid.
        assert set(policy["spec"]["policyTypes"]) <= {"Ingress", "Egress"}, name
        for way, peers in (("ingress", "from"), ("egress", "to")):
            for rule in policy["spec"].get(way, ()):
                assert rule.get(peers), f"{name}: a rule without peers allows all peers"
                assert rule.get("ports"), f"{name}: a rule without ports allows all ports"


def check_secrets(rendered: Rendered) -> None:
    """Check that no environment variable contains a secret. Secrets are mounted as files.

    A value with "@" may be a URL with a password.
    """
    for name, template in rendered.pods():
        spec = template["spec"]
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            for variable in container.get("env", ()):
                assert set(variable.get("valueFrom", ())) <= {"fieldRef"}, name
                assert "@" not in variable.get("value", ""), (name, variable["name"])
                assert not variable["name"].endswith("SECRET"), name
