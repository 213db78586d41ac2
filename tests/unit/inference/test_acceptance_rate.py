"""The acceptance rate of speculative decoding, estimated for each language.

The engine's counters of drafted and accepted tokens do not distinguish languages.
"""

import random

import pytest

from inference.pools.speculation.acceptance_rate import (
    HALF_LIFE_S,
    MIN_TOKENS,
    AcceptanceRates,
    AcceptanceWindow,
    RequestKind,
)

PYTHON, HTML, RUST = RequestKind("python"), RequestKind("html"), RequestKind("rust")
# For each language: the drafted tokens per generated token, and the accepted share of the drafts.
TRUTH = {PYTHON: (1.2, 0.7), HTML: (0.8, 0.2), RUST: (1.0, 0.5)}


def _make_window(generated: dict[RequestKind, int], noise: random.Random) -> AcceptanceWindow:
    """Return the counters after these generated tokens, drawn at random according to TRUTH."""
    drafted = accepted = 0
    for kind, tokens in generated.items():
        drafted_per_token, accepted_share = TRUTH[kind]
        num_drafted = round(tokens * drafted_per_token * noise.uniform(0.8, 1.2))
        drafted += num_drafted
        accepted += sum(noise.random() < accepted_share for _ in range(num_drafted))
    return AcceptanceWindow(generated, drafted, accepted)


def _make_rates(
    num_windows: int, *, seed: int = 1, kinds: tuple[RequestKind, ...] = (PYTHON, HTML)
) -> AcceptanceRates:
    """Return rates after windows that each have random numbers of tokens of all these kinds."""
    noise, rates = random.Random(seed), AcceptanceRates()
    for _ in range(num_windows):
        generated = {kind: noise.randrange(20, 400) for kind in kinds}
        rates.add(_make_window(generated, noise))
    return rates


def test_acceptance_is_estimated_for_languages_that_always_run_together() -> None:
    estimates = _make_rates(120).estimates()

    assert estimates[PYTHON].acceptance == pytest.approx(0.7, abs=0.05)
    assert estimates[HTML].acceptance == pytest.approx(0.2, abs=0.05)


def test_only_an_acceptance_significantly_below_one_half_is_low() -> None:
    estimates = _make_rates(120, kinds=(PYTHON, HTML, RUST)).estimates()

    assert {kind: estimate.is_low for kind, estimate in estimates.items()} == {
        PYTHON: False,
        HTML: True,
        RUST: False,
    }


def test_an_acceptance_of_one_half_is_rarely_low_by_chance() -> None:
    is_low = [
        _make_rates(60, seed=seed, kinds=(PYTHON, RUST)).estimates()[RUST].is_low
        for seed in range(40)
    ]

    # Low means two standard errors below one half. By chance, about one of 40 estimates is so low.
    assert sum(is_low) <= 5


def test_languages_in_a_fixed_mixture_have_no_estimates() -> None:
    noise, rates = random.Random(3), AcceptanceRates()
    for _ in range(60):
        tokens = noise.randrange(50, 100)
        # The counters cannot show which of the two languages has the accepted drafts.
        rates.add(_make_window({PYTHON: 2 * tokens, HTML: tokens}, noise))

    assert rates.estimates() == {}


def test_few_windows_give_no_estimates() -> None:
    assert _make_rates(8).estimates() == {}


def test_a_rare_language_has_no_estimate() -> None:
    noise, rates = random.Random(4), AcceptanceRates()
    for _ in range(60):
        rates.add(_make_window({PYTHON: noise.randrange(100, 300), HTML: 1}, noise))

    assert set(rates.estimates()) == {PYTHON}


def test_estimates_without_new_data_decay() -> None:
    rates = _make_rates(120)
    assert rates.estimates() != {}

    rates.decay(20 * HALF_LIFE_S)

    assert rates.estimates() == {}


def test_new_data_overrides_decayed_data() -> None:
    noise, rates = random.Random(5), AcceptanceRates()
    for _ in range(40):
        rates.add(AcceptanceWindow({PYTHON: 200}, drafted=200, accepted=20))
    assert rates.estimates()[PYTHON].is_low

    rates.decay(6 * HALF_LIFE_S)
    for _ in range(40):
        rates.add(_make_window({PYTHON: 200}, noise))

    assert not rates.estimates()[PYTHON].is_low


def test_a_language_without_drafts_is_not_low() -> None:
    rates = AcceptanceRates()
    for _ in range(30):
        rates.add(AcceptanceWindow({PYTHON: int(MIN_TOKENS)}, drafted=0, accepted=0))

    estimate = rates.estimates()[PYTHON]
    assert (estimate.acceptance, estimate.is_low) == (None, False)


def test_at_most_twelve_of_many_languages_are_estimated() -> None:
    noise, rates = random.Random(6), AcceptanceRates()
    kinds = [RequestKind(f"language {n}") for n in range(40)]
    for _ in range(200):
        generated = {kind: noise.randrange(20, 400) for kind in noise.sample(kinds, 10)}
        rates.add(AcceptanceWindow(generated, drafted=100, accepted=60))

    assert 1 <= len(rates.estimates()) <= 12
