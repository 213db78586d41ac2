"""The command, the environment and the pool entry of an engine that `make up` starts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from caret.contracts.policy import Tier
from caret.foundation.environment import BadSetting
from caret.local.engines.engine import (
    DEMO_MODEL,
    EngineSettings,
    LocalModel,
    build_engine_service,
    engine_command,
    engine_environment,
    engine_from_environment,
    find_cause,
    first_token_targets,
)
from caret.local.engines.profiles import Hardware
from caret.local.paths import EmbeddedPaths

SETTINGS = EngineSettings(
    model=LocalModel(path="/models/demo", served_name="demo"),
    port=8402,
    hardware=Hardware.CPU,
    profile=Tier.FAST,
)


@pytest.fixture(autouse=True)
def cpu_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests find vLLM's build for CPUs.

    Without vLLM, as in the environment of `make unit`, the code assumes the build for GPUs.
    """
    monkeypatch.setattr("caret.local.engines.engine.is_built_for_gpu", lambda: False)


def _command(**changes: Any) -> tuple[str, ...]:
    return engine_command(replace(SETTINGS, **changes))


def _value(command: tuple[str, ...], option: str) -> str:
    return command[command.index(option) + 1]


def test_the_engine_listens_only_on_the_loopback_address() -> None:
    assert _value(_command(), "--host") == "127.0.0.1"


def test_the_engine_logs_no_requests() -> None:
    assert {"--no-enable-log-requests", "--disable-uvicorn-access-log"} <= set(_command())


def test_on_a_cpu_the_engine_gets_the_smallest_block_size_and_runs_eagerly() -> None:
    assert _value(_command(), "--block-size") == "32"
    assert "--enforce-eager" in _command()


def test_on_a_gpu_the_engine_gets_no_cpu_flags() -> None:
    command = _command(hardware=Hardware.GPU)

    assert _value(command, "--block-size") == "16"
    assert "--enforce-eager" not in command


@pytest.mark.parametrize(("num_cores", "is_one_process"), [(4, True), (5, False)])
def test_on_few_cores_the_model_runs_in_the_process_of_the_scheduler(
    num_cores: int, is_one_process: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(num_cores)))

    environment = engine_environment({}, has_gpu=False, has_model_folder=True)

    assert ("VLLM_ENABLE_V1_MULTIPROCESSING" in environment) == is_one_process


def test_extra_arguments_come_last() -> None:
    assert _command(extra_arguments=("--seed", "7"))[-2:] == ("--seed", "7")


def test_the_demonstration_model_is_the_default() -> None:
    model = engine_from_environment(8402).model

    assert (model.path, model.served_name) == (str(DEMO_MODEL), "demo")


def test_a_model_folder_is_served_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my-coder"
    folder.mkdir()
    monkeypatch.setenv("CARET_MODEL", str(folder))

    model = engine_from_environment(8402).model

    assert (model.path, model.served_name, model.is_folder) == (str(folder), "my-coder", True)


def test_a_name_on_the_hub_is_passed_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_MODEL", "Qwen/Qwen2.5-Coder-1.5B")

    model = engine_from_environment(8402).model

    assert (model.path, model.is_folder) == ("Qwen/Qwen2.5-Coder-1.5B", False)


def test_a_missing_model_folder_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_MODEL", "./no/such/folder")

    with pytest.raises(BadSetting, match="CARET_MODEL"):
        engine_from_environment(8402)


def test_extra_arguments_are_split_as_in_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_ENGINE_ARGS", "--seed 7 --chat-template '{{ a b }}'")

    extra = engine_from_environment(8402).extra_arguments

    assert extra == ("--seed", "7", "--chat-template", "{{ a b }}")


def test_arguments_with_an_unclosed_quote_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_ENGINE_ARGS", "--chat-template '{{ a }}")

    with pytest.raises(BadSetting, match="CARET_ENGINE_ARGS"):
        engine_from_environment(8402)


def test_the_pool_entry_names_the_speculation_method(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = '-sc \'{"method":"suffix","suffix_decoding_max_cached_requests":0}\''
    monkeypatch.setenv("CARET_ENGINE_ARGS", arguments)

    assert engine_from_environment(8402).entry == {
        "url": "http://127.0.0.1:8402",
        "speculation": "suffix",
        "suffix_decoding_max_cached_requests": 0,
        "max_num_seqs": 8,
    }


def test_the_pool_entry_has_the_batch_size_that_the_user_sets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CARET_ENGINE_ARGS", "--max-num-seqs=3")

    assert engine_from_environment(8402).entry["max_num_seqs"] == 3


def test_speculation_that_the_user_sets_replaces_that_of_the_profile() -> None:
    own = ("--spec-model", "/models/draft")

    assert "--speculative-config" in _command(hardware=Hardware.GPU)
    assert "--speculative-config" not in _command(hardware=Hardware.GPU, extra_arguments=own)


def test_the_demonstration_model_is_not_quantized() -> None:
    demo = LocalModel(path=str(DEMO_MODEL), served_name="demo")

    assert _value(_command(hardware=Hardware.GPU), "--quantization") == "fp8"
    assert "--quantization" not in _command(hardware=Hardware.GPU, model=demo)


def test_only_an_engine_on_a_gpu_gets_a_share_of_the_memory() -> None:
    command = _command(hardware=Hardware.GPU, gpu_memory_percent=45)

    assert _value(command, "--gpu-memory-utilization") == "0.45"
    assert "--gpu-memory-utilization" not in _command(gpu_memory_percent=45)


def test_arguments_that_leak_data_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_ENGINE_ARGS", "--spec-method suffix")

    with pytest.raises(BadSetting, match="CARET_ENGINE_ARGS: suffix decoding"):
        engine_from_environment(8402)


def test_the_engine_gets_no_secrets_of_other_programs(tmp_path: Path) -> None:
    names = (
        *("CARET_ROOT_SECRET", "DATABASE_URL", "CARET_OWNER_DATABASE_URL", "REDIS_URL"),
        *("CARET_BACKUP_DATABASE_URL", "CARET_HOME_REGION_REDIS_URL", "CARET_SMTP_URL"),
        *("CARET_API_KEY", "CARET_SERVICE_KEY", "CARET_STRIPE_KEY", "CARET_LEAK_REPORT_SECRET"),
    )
    secrets = {name + tail: "secret" for name in names for tail in ("", "_FILE")}
    environment = {**secrets, "PATH": "/bin", "HF_TOKEN": "its own"}

    service = build_engine_service(SETTINGS, paths=EmbeddedPaths(tmp_path), environment=environment)

    passed_environment = service.make_spec().environment
    assert "secret" not in passed_environment.values()
    assert (passed_environment["PATH"], passed_environment["HF_TOKEN"]) == ("/bin", "its own")


def test_load_shedding_targets_are_relaxed_only_on_a_cpu() -> None:
    on_cpu, on_gpu = (
        first_token_targets(replace(SETTINGS, hardware=hardware))
        for hardware in (Hardware.CPU, Hardware.GPU)
    )

    assert int(on_cpu["CARET_FIRST_TOKEN_TARGET_INLINE_MS"]) >= 1_000  # the default is 100 ms
    assert on_gpu == {}


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (
            "(Worker pid=7) ERROR 11-26 13:51:15 [multiproc_executor.py:953] safetensors._rust."
            "SafetensorError: Error while deserializing header: incomplete metadata\n"
            "RuntimeError: Engine core initialization failed. See root cause above.\n",
            "Error while deserializing header: incomplete metadata.",
        ),
        (
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
            "  Value error, Unknown quantization method: x. [type=value_error, input_value=x]\n",
            "Unknown quantization method: x.",
        ),
        (
            "usage: api_server.py [options]\n"
            "api_server.py: error: unrecognized arguments: --no-such-flag\n",
            "unrecognized arguments: --no-such-flag.",
        ),
        (
            "(Worker pid=7) WARNING 11-26 13:48:22 [utils.py:255] This can cause an OSError: 24\n"
            "KeyboardInterrupt: terminated\n",
            None,  # neither a warning nor the end of the process is a cause
        ),
    ],
)
def test_the_cause_of_a_failed_start_is_read_from_the_log(log: str, cause: str | None) -> None:
    assert find_cause(log) == cause
