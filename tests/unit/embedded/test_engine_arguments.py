"""CARET_ENGINE_ARGS: arguments that leak data are rejected in every spelling that vLLM accepts."""

import pytest

from caret.foundation.environment import BadSetting
from caret.local.engines.engine_args import NO_ENGINE_ARGUMENTS, check_arguments
from inference.pools.cache_isolation import SpeculationMethod

SUFFIX = '{"method":"suffix"}'
LMCACHE = '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'

LEAKS = {
    "suffix decoding as vLLM has it": ("--speculative-config", SUFFIX),
    "with an equals sign": (f"--speculative-config={SUFFIX}",),
    "with underscores": ("--speculative_config", SUFFIX),
    "in short": ("-sc", SUFFIX),
    "shortened": ("--speculative", SUFFIX),
    "by its parts": ("--speculative-config.method", "suffix"),
    "by another name": ("--spec-method", "suffix"),
    "with a memory": (
        "--speculative-config",
        '{"method":"suffix","suffix_decoding_max_cached_requests":5}',
    ),
    "a connector": ("--kv-transfer-config", LMCACHE),
    "a connector by its parts": ("--kv-transfer-config.kv_connector", "HF3FSKVConnector"),
    "a connector shortened": (f"--kv-transfer={LMCACHE}",),
    "a connector of their own": (
        "--kv-transfer-config",
        '{"kv_connector":"OffloadingConnector","kv_connector_module_path":"own"}',
    ),
    "several connectors in one": ("--kv-transfer-config", '{"kv_connector":"MultiConnector"}'),
    "no connector's name": ("--kv-transfer-config", "{}", "--kv-transfer-config.kv_role", "x"),
    "a file": ("--config", "engine.yaml"),
    "a file with an equals sign": ("--config=engine.yaml",),
    "no JSON": ("--speculative-config", "suffix"),
}


@pytest.mark.parametrize("what", LEAKS)
def test_what_leaks_is_refused(what: str) -> None:
    with pytest.raises(BadSetting, match="CARET_ENGINE_ARGS"):
        check_arguments(LEAKS[what], {})


def test_offloading_by_an_untried_connector_is_refused() -> None:
    arguments = ("--kv-offloading-size", "4")
    check_arguments(arguments, {})

    with pytest.raises(BadSetting, match="SimpleCPUOffloadConnector"):
        check_arguments(arguments, {"VLLM_USE_SIMPLE_KV_OFFLOAD": "1"})


@pytest.mark.parametrize("name", ["OffloadingConnector", "LMCacheMPConnector"])
def test_connectors_whose_keys_hold_the_salt_are_allowed(name: str) -> None:
    check_arguments(("--kv-transfer-config", f'{{"kv_connector":"{name}"}}'), {})


@pytest.mark.parametrize(
    ("arguments", "speculation"),
    [
        (("--seed", "7", "--max-num-seqs=4"), None),
        (("--speculative-config", '{"method":"ngram","num_speculative_tokens":3}'), "ngram"),
        (("--spec-model", "/models/draft", "--spec-tokens", "3"), "draft"),
        (("--speculative-config.model", "/models/draft"), "draft"),
        (
            (
                "--speculative-config.method=suffix",
                "--speculative-config.suffix_decoding_max_cached_requests=0",
            ),
            "suffix",
        ),
    ],
)
def test_it_says_how_the_engine_speculates(
    arguments: tuple[str, ...], speculation: str | None
) -> None:
    stated = check_arguments(arguments, {})

    assert stated.speculation == (SpeculationMethod(speculation) if speculation else None)


def test_nothing_said_is_nothing_stated() -> None:
    assert check_arguments((), {}) == NO_ENGINE_ARGUMENTS
