"""Experiments with prompts and filters: the assignment of users to variants, and invalid files."""

from collections import Counter
from pathlib import Path

import pytest

from caret.contracts.experiments import (
    DEFAULT_FILES_SHARE,
    DEFAULT_SUFFIX_SHARE,
    FILTERS,
    LAYOUTS,
    MAX_SHARES,
    RANKINGS,
    VariantEntry,
)
from caret.foundation.environment import BadSetting
from caret.foundation.ids import UserId
from inference.completion.variant import NO_VARIANT
from inference.context.prompt.model_formats import layout
from inference.context.prompt.token_budget import MIN_PREFIX_SHARE, TokenShares
from inference.context.sources.ranking import Ranking
from inference.filtering import filter as filtering
from inference.gateway.experiments import ExperimentSet, make_experiment, read_experiments
from tests.fakes.tenants import GLOBEX, make_policy, make_principal

EXPERIMENT = """
[[experiments]]
name = "suffix"
variants = [{ name = "control" }, { name = "wide", weight = 3, suffix_share = 0.35 }]
"""


def _read_experiments(folder: Path, text: str) -> ExperimentSet:
    path = folder / "experiments.toml"
    path.write_text(text)
    return read_experiments(path)


def test_users_are_assigned_by_weight_and_permanently(tmp_path: Path) -> None:
    experiments = _read_experiments(tmp_path, EXPERIMENT)
    users = [make_principal(user_id=UserId(f"user-{n}")) for n in range(400)]

    first_names = [experiments.assign(user).name for user in users]
    second_names = [experiments.assign(user).name for user in users]

    counts = Counter(first_names)
    assert first_names == second_names
    assert set(counts) == {"suffix/control", "suffix/wide"}
    assert 60 < counts["suffix/control"] < 140  # a quarter of 400 on average


def test_users_of_two_tenants_are_assigned_independently(tmp_path: Path) -> None:
    experiments = _read_experiments(tmp_path, EXPERIMENT)

    our_variants, their_variants = (
        [
            experiments.assign(make_principal(tenant_id=tenant, user_id=UserId(f"user-{n}"))).name
            for n in range(50)
        ]
        for tenant in (make_principal().snapshot.tenant_id, GLOBEX)
    )

    assert our_variants != their_variants


def test_a_tenant_without_experiments_has_no_variant(tmp_path: Path) -> None:
    policy = make_policy(has_experiments=False)

    assert (
        _read_experiments(tmp_path, EXPERIMENT).assign(make_principal(policy=policy)) is NO_VARIANT
    )


def test_an_experiment_for_one_tenant_does_not_affect_another(tmp_path: Path) -> None:
    experiments = _read_experiments(tmp_path, EXPERIMENT + 'tenants = ["acme"]\n')

    assert experiments.assign(make_principal()).name
    assert experiments.assign(make_principal(tenant_id=GLOBEX)) is NO_VARIANT


def test_service_keys_are_assigned_by_key(tmp_path: Path) -> None:
    experiments = _read_experiments(tmp_path, EXPERIMENT)

    names = {
        experiments.assign(make_principal(user_id=None, key_id=f"key-{n}")).name for n in range(50)
    }

    assert len(names) == 2


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("experiments = [", "Invalid value"),
        ("[[experiments]]\nname = 'a'\nvariants = []", "needs variants"),
        ("[[experiments]]\nname = 'a'\nvariants = [{name='x'}, {name='x'}]", "different names"),
        ("[[experiments]]\nname = 'a'\nvariants = [{name='x', weight=0}]", "weights"),
        ("[[experiments]]\nname = 'a'\nvariants = [{name='x', files_share=2.0}]", "files_share"),
        ("[[experiments]]\nname = 'a'\nvariants = [{name='x', colour='red'}]", "colour"),
        (EXPERIMENT + EXPERIMENT, "two experiments"),
    ],
)
def test_an_error_in_a_file_names_the_setting_and_the_reason(
    tmp_path: Path, text: str, part: str
) -> None:
    with pytest.raises(BadSetting, match="CARET_EXPERIMENTS_FILE") as rejected:
        _read_experiments(tmp_path, text)

    assert part in str(rejected.value)


def test_operators_choose_among_the_options_that_gateways_know() -> None:
    assert set(LAYOUTS) == set(layout.LAYOUTS)
    assert set(RANKINGS) == {ranking.value for ranking in Ranking}
    assert FILTERS == filtering.FILTERS
    default_shares = TokenShares()
    assert default_shares.files == DEFAULT_FILES_SHARE
    assert default_shares.suffix == DEFAULT_SUFFIX_SHARE
    # Files and suffix may use the tokens that are not reserved for the prefix and the snippets.
    assert pytest.approx(1 - MIN_PREFIX_SHARE - default_shares.snippets) == MAX_SHARES


def test_a_started_experiment_replaces_the_one_of_the_file_until_it_is_stopped(
    tmp_path: Path,
) -> None:
    experiments, user = _read_experiments(tmp_path, EXPERIMENT), make_principal()
    started = make_experiment("suffix", tenants=(), variants=(VariantEntry("only"),))

    experiments.set_running([started])
    during = experiments.assign(user).name
    experiments.set_running([])

    assert during == "suffix/only"
    assert experiments.assign(user).name in ("suffix/control", "suffix/wide")
