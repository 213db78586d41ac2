"""The chart and `make up` start engines with the flags of the same profiles."""

import tomllib
from typing import Any

import pytest

from caret.contracts.policy import Tier
from caret.local.engines.engine import EngineSettings, LocalModel, engine_command
from caret.local.engines.profiles import Hardware, find_profile
from tests.functional.helm.rendered import Rendered, render

# Flags that differ between a machine and a cluster: addresses, sizes, and the shutdown timeout.
OWN_FLAGS = {"--model", "--served-model-name", "--host", "--port", "--max-model-len"}
OWN_FLAGS |= {"--shutdown-timeout", "--tensor-parallel-size"}
MODEL = LocalModel(path="/models/any", served_name="any")


@pytest.mark.parametrize("tier", Tier)
def test_pools_have_the_flags_of_their_profile(tier: Tier) -> None:
    profile = {flag.flag: flag.value for flag in find_profile(tier, Hardware.GPU)}
    local_command = engine_command(EngineSettings(MODEL, 8000, hardware=Hardware.GPU, profile=tier))

    assert _flags(render().container(f"caret-engine-{tier}")["args"]) == profile
    assert _flags(local_command[local_command.index("--model") :]) == profile


def test_values_of_a_pool_replace_those_of_its_profile() -> None:
    rendered = _render_fast_pool(
        speculation={"method": "suffix", "tokens": 3}, quantization="awq_marlin", maxNumSeqs=4
    )

    flags = _flags(rendered.container("caret-engine-fast")["args"])
    assert (flags["--quantization"], flags["--max-num-seqs"]) == ("awq_marlin", "4")
    assert '"method":"suffix"' in (flags["--speculative-config"] or "")
    assert _replica(rendered, "fast") == {
        "speculation": "suffix",
        "suffix_decoding_max_cached_requests": 0,
        "max_num_seqs": 4,
    }


def test_a_pool_may_do_without_speculation_and_quantization() -> None:
    rendered = _render_fast_pool(speculation={"method": "none"}, quantization="none")

    flags = _flags(rendered.container("caret-engine-fast")["args"])
    assert flags.keys().isdisjoint({"--speculative-config", "--quantization"})
    assert "speculation" not in _replica(rendered, "fast")


@pytest.mark.parametrize("tier", Tier)
def test_the_pools_file_has_the_concurrency_and_speculation_of_the_profile(tier: Tier) -> None:
    profile = {flag.flag: flag.value for flag in find_profile(tier, Hardware.GPU)}

    replica = _replica(render(), tier)

    assert replica["max_num_seqs"] == int(profile["--max-num-seqs"] or 0)
    assert ("speculation" in replica) is ("--speculative-config" in profile)


def test_a_pool_may_have_replicas_with_and_without_speculation() -> None:
    rendered = _render_fast_pool(replicas=2, maxReplicas=2, plainReplicas=2)

    plain = _flags(rendered.container("caret-engine-fast-plain")["args"])
    speculating = _flags(rendered.container("caret-engine-fast")["args"])
    assert speculating.keys() - plain.keys() == {"--speculative-config"}
    assert rendered.of_kind("StatefulSet")["caret-engine-fast-plain"]["spec"]["replicas"] == 2
    replicas = _replicas(rendered, "fast")
    assert [replica.get("speculation") for replica in replicas] == ["ngram"] * 2 + [None] * 2
    assert [replica["url"] for replica in replicas[2:]] == [
        f"http://caret-engine-fast-plain-{n}.caret-engine-fast-plain:8000" for n in range(2)
    ]
    assert "caret-engine-quality-plain" not in rendered.of_kind("StatefulSet")


def _render_fast_pool(**values: Any) -> Rendered:
    return render(changes={"pools": {"fast": values}})


def _replica(rendered: Rendered, pool_name: str) -> dict[str, Any]:
    """Return the first replica's entry in the gateways' pools file, without its address."""
    (first, *_) = _replicas(rendered, pool_name)
    return {name: value for name, value in first.items() if name != "url"}


def _replicas(rendered: Rendered, pool_name: str) -> list[dict[str, Any]]:
    (pools_file,) = [
        config_map["data"]["pools.toml"]
        for config_map in rendered.of_kind("ConfigMap").values()
        if "pools.toml" in config_map["data"]
    ]
    pools = {pool["name"]: pool for pool in tomllib.loads(pools_file)["pools"]}
    replicas: list[dict[str, Any]] = pools[pool_name]["replicas"]
    return replicas


def _flags(arguments: Any) -> dict[str, str | None]:
    """Return the values of flags, written `--flag=value`, `--flag value` or `--flag`.

    OWN_FLAGS are left out.
    """
    flags: dict[str, str | None] = {}
    for argument in arguments:
        if argument.startswith("--"):
            name, equals, value = argument.partition("=")
            flags[name] = value if equals else None
        else:
            flags[name] = argument
    return {name: value for name, value in flags.items() if name not in OWN_FLAGS}
