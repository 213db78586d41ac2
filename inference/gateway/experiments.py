"""Experiments: variants of the prompt or the filter, each served to a part of the users.

A variant can change the prompt's layout, the ranking of other files, the shares of the token budget
for other files and for the suffix, and the filter.

Operators start them at run time (fleet_state_feed.py), or in the TOML file that
CARET_EXPERIMENTS_FILE names:

    [[experiments]]
    name = "suffix-share"
    tenants = ["acme"]             # slugs; left out: all tenants
    variants = [
        { name = "control", weight = 1 },
        { name = "wide", weight = 1, suffix_share = 0.35 },
    ]

Each user and each service key gets the same variant every time, chosen by a hash of the experiment,
the tenant and the user or key. A tenant takes part in the first experiment that lists it or that
lists no tenants. If its policy forbids experiments, it takes part in none.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import msgspec

from caret.contracts.experiments import VariantEntry
from caret.foundation.environment import BadSetting
from caret.foundation.toml_file import read_toml
from inference.completion.request import Principal
from inference.completion.variant import NO_VARIANT, Variant


class ExperimentEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An experiment in the operator's file."""

    name: str
    variants: tuple[VariantEntry, ...]
    tenants: tuple[str, ...] = ()  # slugs; empty: all tenants


class _ExperimentsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    experiments: tuple[ExperimentEntry, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    tenants: frozenset[str]  # slugs; empty: all tenants
    variants: tuple[Variant, ...]
    thresholds: tuple[int, ...]  # cumulative weights of the variants

    def is_enabled_for(self, slug: str) -> bool:
        return not self.tenants or slug in self.tenants

    def assign_variant(self, subject: str) -> Variant:
        """Return the variant of a subject, always the same one.

        `subject` is the tenant and the user or service key: `tenant|user`.
        """
        digest = hashlib.blake2b(f"{self.name}|{subject}".encode(), digest_size=8).digest()
        point = int.from_bytes(digest) % self.thresholds[-1]
        return next(
            variant
            for variant, threshold in zip(self.variants, self.thresholds, strict=True)
            if point < threshold
        )


class ExperimentSet:
    """The experiments of the operator's file, and those that operators start at run time.

    Experiments started at run time come first. They replace experiments of the file with the same
    name.
    """

    def __init__(self, experiments: Iterable[Experiment] = ()) -> None:
        self._file_experiments = tuple(experiments)
        self._experiments = self._file_experiments

    def set_running(self, experiments: Iterable[Experiment]) -> None:
        """Set the experiments that operators have started."""
        running_experiments = tuple(experiments)
        names = {experiment.name for experiment in running_experiments}
        kept_experiments = (
            experiment for experiment in self._file_experiments if experiment.name not in names
        )
        self._experiments = (*running_experiments, *kept_experiments)

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(variant for experiment in self._experiments for variant in experiment.variants)

    def assign(self, principal: Principal) -> Variant:
        """Return the principal's variant; NO_VARIANT if it takes part in no experiment."""
        snapshot, credential = principal.snapshot, principal.credential
        if not snapshot.policy.has_experiments:
            return NO_VARIANT
        for experiment in self._experiments:
            if experiment.is_enabled_for(snapshot.slug):
                user = credential.user_id or credential.key_id  # a service key has no user
                return experiment.assign_variant(f"{snapshot.tenant_id}|{user}")
        return NO_VARIANT


def read_experiments(path: Path) -> ExperimentSet:
    """Read the operator's file. Raises BadSetting, whose message names the file and the entry."""
    file = read_toml(path, _ExperimentsFile, setting="CARET_EXPERIMENTS_FILE")
    names = [entry.name for entry in file.experiments]
    if len(set(names)) < len(names):
        raise BadSetting(f"CARET_EXPERIMENTS_FILE: {path}: two experiments have the same name.")
    return ExperimentSet(_read_experiment(entry, path) for entry in file.experiments)


def _read_experiment(entry: ExperimentEntry, path: Path) -> Experiment:
    try:
        return make_experiment(entry.name, tenants=entry.tenants, variants=entry.variants)
    except BadSetting as error:
        raise BadSetting(f"CARET_EXPERIMENTS_FILE: {path}: {error}") from error


def make_experiment(
    name: str, *, tenants: Iterable[str], variants: Sequence[VariantEntry]
) -> Experiment:
    """Return the experiment. Raises BadSetting, whose message names the experiment."""
    names = [variant.name for variant in variants]
    if not names or len(set(names)) < len(names):
        raise BadSetting(f"{name} needs variants with different names.")
    if any(variant.weight < 1 for variant in variants):
        raise BadSetting(f"{name}: weights must be at least 1.")
    return Experiment(
        name=name,
        tenants=frozenset(tenants),
        variants=tuple(_read_variant(name, variant) for variant in variants),
        thresholds=tuple(accumulate(variant.weight for variant in variants)),
    )


def _read_variant(experiment: str, entry: VariantEntry) -> Variant:
    for name in ("files_share", "suffix_share"):
        share = getattr(entry, name)
        if share is not None and not 0 <= share <= 1:
            raise BadSetting(f"{experiment}: {name} must be from 0 to 1.")
    return Variant(
        name=f"{experiment}/{entry.name}",
        layout=entry.layout,
        ranking=entry.ranking,
        files_share=entry.files_share,
        suffix_share=entry.suffix_share,
        filter=entry.filter,
    )
