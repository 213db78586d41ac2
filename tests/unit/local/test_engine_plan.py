"""The plan of the engines that `make up` starts: by memory, cores, hardware and settings."""

from dataclasses import replace

import pytest

from caret.contracts.policy import Tier
from caret.foundation.environment import BadSetting
from caret.local.engines import engine_plan
from caret.local.engines.engine_plan import Machine, plan_engines, require_hardware
from caret.local.engines.profiles import Hardware
from caret.local.errors import MissingFeature

GIB = 2**30
LARGE = Machine(Hardware.CPU, free_bytes=16 * GIB, num_cores=8)
SMALL = replace(LARGE, free_bytes=5 * GIB)
FAST_ONLY, BOTH = (Tier.FAST,), (Tier.FAST, Tier.QUALITY)


@pytest.mark.parametrize(
    ("machine", "is_demo_model", "profiles", "reason"),
    [
        (LARGE, True, BOTH, "Two engines"),
        (replace(LARGE, hardware=Hardware.GPU), True, BOTH, "for a GPU"),
        (SMALL, True, FAST_ONLY, "7 GB of free memory, and this machine has 5.0 GB"),
        (replace(LARGE, num_cores=2), True, FAST_ONLY, "4 cores"),
        (LARGE, False, FAST_ONLY, "CARET_ENGINES=2"),
    ],
)
def test_two_engines_start_only_if_there_is_room(
    machine: Machine, is_demo_model: bool, profiles: tuple[Tier, ...], reason: str
) -> None:
    plan = plan_engines("auto", machine, is_demo_model=is_demo_model)

    assert plan.profiles == profiles
    assert reason in plan.sentence


def test_the_setting_decides_on_the_number_of_engines() -> None:
    assert plan_engines("1", LARGE, is_demo_model=True).profiles == FAST_ONLY
    assert plan_engines("2", LARGE, is_demo_model=False).profiles == BOTH


@pytest.mark.parametrize("setting", ["0", "3", "two", ""])
def test_an_invalid_number_of_engines_is_rejected(setting: str) -> None:
    with pytest.raises(BadSetting, match="write auto, 1, 2 or mixed"):
        plan_engines(setting, LARGE, is_demo_model=True)


def test_a_mixed_plan_has_two_engines_of_one_profile() -> None:
    plan = plan_engines("mixed", LARGE, is_demo_model=False)

    assert plan.is_mixed
    assert plan.profiles == (Tier.FAST, Tier.FAST)
    assert "one with speculation, one without" in plan.sentence


def test_a_mixed_plan_without_memory_is_rejected() -> None:
    with pytest.raises(BadSetting, match="CARET_ENGINES is mixed, but two engines need 7 GB"):
        plan_engines("mixed", SMALL, is_demo_model=True)


def test_two_engines_without_memory_are_rejected() -> None:
    with pytest.raises(BadSetting, match="CARET_ENGINES is 2, but two engines need 7 GB"):
        plan_engines("2", SMALL, is_demo_model=True)


def test_a_build_of_vllm_for_a_gpu_is_rejected_without_a_gpu() -> None:
    # The hardware is that of vLLM's build; free_bytes=None means that the machine has no GPU.
    without_gpu = Machine(Hardware.GPU, free_bytes=None, num_cores=8)

    with pytest.raises(MissingFeature, match="nvidia-smi finds none"):
        require_hardware(without_gpu, "")  # CARET_ENGINE is not set


def test_the_memory_of_a_kv_tier_is_not_free_for_engines() -> None:
    with_kv_tier = LARGE.without(LARGE.free_bytes or 0)  # a KV tier that takes all free memory

    assert "need 7 GB" not in plan_engines("auto", LARGE, is_demo_model=True).sentence
    plan = plan_engines("auto", with_kv_tier, is_demo_model=True)
    assert "two engines need 7 GB" in plan.sentence


def test_a_setting_that_does_not_fit_the_build_of_vllm_is_rejected() -> None:
    require_hardware(LARGE, "cpu")

    with pytest.raises(BadSetting, match="CARET_ENGINE is 'gpu', but vLLM is installed for a CPU"):
        require_hardware(LARGE, "gpu")
    with pytest.raises(BadSetting, match="CARET_ENGINE is 'tpu'; write cpu or gpu"):
        require_hardware(LARGE, "tpu")


def test_a_container_at_its_limit_has_no_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_plan, "_read_free_cgroup_bytes", lambda _folder: 0)

    assert engine_plan.read_free_bytes() == 0
