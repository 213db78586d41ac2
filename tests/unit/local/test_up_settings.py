"""Settings of `make up` from environment variables."""

from dataclasses import replace
from pathlib import Path

import pytest

from caret.contracts.policy import Tier
from caret.foundation.environment import BadSetting
from caret.local.engines.engine_plan import EnginePlan
from caret.local.installation import describe_step, list_step_titles
from caret.local.paths import REPOSITORY, home_from_environment
from caret.local.services import environment_of_children
from caret.local.up_settings import UpSettings, make_engines, settings_from_environment


def test_an_external_database_needs_the_owners_url_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://app@db/caret")

    with pytest.raises(BadSetting, match="CARET_OWNER_DATABASE_URL"):
        settings_from_environment()


def test_services_that_the_customer_provides_are_not_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://app@db/caret")
    monkeypatch.setenv("CARET_OWNER_DATABASE_URL_FILE", "/run/secrets/owner")
    monkeypatch.setenv("REDIS_URL", "redis://cache")
    monkeypatch.setenv("CARET_POOLS_FILE", "/etc/caret/pools.toml")

    settings = settings_from_environment()

    assert settings.has_own_postgres
    assert settings.has_own_redis
    assert settings.pools_file == Path("/etc/caret/pools.toml")
    assert settings.ports.engine not in settings.needed_ports
    assert list_step_titles(settings)[0] == "Migrations"


def test_without_settings_everything_is_started() -> None:
    settings = settings_from_environment()

    assert not settings.has_own_postgres
    assert not settings.has_own_redis
    assert settings.pools_file == settings.paths.pools
    assert settings.ports.engine in settings.needed_ports


@pytest.mark.parametrize(
    ("retrieval", "url", "is_started"),
    [
        (None, None, False),
        ("False", None, False),
        ("True", None, True),
        ("True", "http://embeddings", False),
        ("False", "http://embeddings", False),
    ],
)
def test_retrieval_and_its_engine_are_started_if_enabled(
    monkeypatch: pytest.MonkeyPatch, retrieval: str | None, url: str | None, is_started: bool
) -> None:
    if retrieval is not None:
        monkeypatch.setenv("CARET_RETRIEVAL", retrieval)
    if url is not None:
        monkeypatch.setenv("CARET_EMBEDDINGS_URL", url)

    settings = settings_from_environment()

    assert (settings.embeddings is not None) is is_started
    assert (settings.ports.embeddings in settings.needed_ports) is is_started
    assert ("Embeddings" in list_step_titles(settings)) is is_started
    assert settings.has_retrieval is (retrieval == "True")


@pytest.mark.parametrize("text", [None, ""])
def test_the_home_is_in_the_repository_by_default(
    monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    if text is None:
        monkeypatch.delenv("CARET_HOME")
    else:
        monkeypatch.setenv("CARET_HOME", text)

    assert home_from_environment().home == REPOSITORY / ".caret"


def test_the_console_is_an_allowed_origin_of_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_CONSOLE_PORT", "9400")

    environment = environment_of_children(settings_from_environment(), tag="m")

    origins = environment["CARET_ALLOWED_ORIGINS"].split(",")
    assert origins == ["http://127.0.0.1:9400", "http://localhost:9400"]


def test_allowed_origins_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_ALLOWED_ORIGINS", "https://console.example.com")

    environment = environment_of_children(settings_from_environment(), tag="m")

    assert environment["CARET_ALLOWED_ORIGINS"] == "https://console.example.com"


# In a mixed plan, both engines serve both tiers, and only the last one speculates.
PLANS = {
    "1": EnginePlan((Tier.FAST,), sentence=""),
    "2": EnginePlan((Tier.FAST, Tier.QUALITY), sentence=""),
    "mixed": EnginePlan((Tier.FAST, Tier.FAST), sentence="", is_mixed=True),
}


def _with_plan(settings: UpSettings, name: str) -> UpSettings:
    plan = PLANS[name]
    engines = make_engines(plan, settings.engines[0], settings.ports)
    return replace(settings, engine_plan=plan, engines=engines)


@pytest.mark.parametrize("plan", PLANS)
def test_the_terminal_has_a_description_of_each_step(
    monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    monkeypatch.setenv("CARET_RETRIEVAL", "True")
    settings = _with_plan(settings_from_environment(), plan)

    *services, completion = list_step_titles(settings)

    assert completion == "a completion"
    assert all(describe_step(title) for title in services)


def test_in_a_mixed_plan_only_one_engine_gets_the_speculation_that_the_user_sets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(
        "CARET_ENGINE_ARGS",
        "--speculative-config.method suffix --max-num-seqs 4"
        " --speculative-config.suffix_decoding_max_cached_requests 0",
    )

    plain, speculating = _with_plan(settings_from_environment(), "mixed").engines

    assert "speculation" not in plain.entry
    assert plain.entry["max_num_seqs"] == 4
    assert speculating.entry["speculation"] == "suffix"


def test_a_mixed_plan_has_replicas_with_and_without_speculation_in_both_tiers() -> None:
    settings = settings_from_environment()

    mixed = _with_plan(settings, "mixed")

    assert isinstance(mixed.replicas, list)
    plain, speculating = (dict(entry) for entry in mixed.replicas if not isinstance(entry, str))
    assert speculating.pop("speculation") == "ngram"
    assert "speculation" not in plain
    assert [engine.name for engine in mixed.engines] == ["Engine", "Speculating engine"]
    assert len(mixed.needed_ports) == len(settings.needed_ports) + 1
    assert plain["url"] != speculating["url"]
