"""Experiments that operators create, start and stop at run time. Gateways follow within a second.

Experiments of the gateways' own file (CARET_EXPERIMENTS_FILE) are not listed here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
import redis
import structlog

from caret.contracts.experiments import (
    DEFAULT_FILES_SHARE,
    DEFAULT_SUFFIX_SHARE,
    EXPERIMENTS,
    EXPERIMENTS_CHANGED,
    EXPERIMENTS_LOG,
    EXPERIMENTS_VERSION,
    FILTERS,
    LAYOUTS,
    MAX_SHARES,
    RANKINGS,
    SCHEMA,
    ExperimentChange,
    VariantEntry,
    decode_experiment,
    encode_experiment,
)
from caret.foundation.clock import from_unix_ms, to_unix_ms
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.validation.text import require_reason
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.fleet_state import FleetStateStore
from tenants.models import Tenant

MAX_EXPERIMENTS: Final = 100
MAX_VARIANTS: Final = 8
MAX_WEIGHT: Final = 1_000
CONTROL: Final = "control"  # name of the variant without a change
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")
_STORE: Final = FleetStateStore(
    EXPERIMENTS, EXPERIMENTS_VERSION, EXPERIMENTS_LOG, EXPERIMENTS_CHANGED
)
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class NewExperiment:
    name: str
    variants: tuple[VariantEntry, ...]  # the first is the control
    tenants: tuple[str, ...] = ()  # slugs; empty: all tenants whose policy allows experiments


@dataclass(frozen=True, slots=True)
class ExperimentRecord:
    """An experiment, or one change of it."""

    name: str
    variants: tuple[VariantEntry, ...]
    tenants: tuple[str, ...]  # as in NewExperiment
    is_running: bool
    operator: str  # handle of the operator who made the change
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ExperimentState:
    version: str  # the version in Redis; "0": nothing was ever set
    entries: dict[str, ExperimentRecord]  # by name, also stopped ones
    latest: list[ExperimentRecord]  # changes of all experiments, newest first


def read_experiment_state(connection: redis.Redis) -> ExperimentState:
    """Read all experiments and the latest changes. Raises RedisUnavailable."""
    state = _STORE.read(connection)
    entries, latest = state.decode(_decode)
    return ExperimentState(state.version, entries, latest)


def start_new_experiment(
    connection: redis.Redis,
    *,
    operator: OperatorView,
    new: NewExperiment,
    reason: str,
    now: datetime,
) -> None:
    """Create and start an experiment.

    Raises Forbidden, InvalidValue, Conflict, RedisUnavailable.
    """
    _require_manager(operator)
    reason = require_reason(reason)
    _check_experiment(new)
    state = read_experiment_state(connection)
    if new.name in state.entries:
        raise Conflict("An experiment with this name already exists.")
    if len(state.entries) >= MAX_EXPERIMENTS:
        raise Conflict("You can have at most {most} experiments.", most=MAX_EXPERIMENTS)
    record = ExperimentRecord(
        name=new.name,
        variants=new.variants,
        tenants=new.tenants,
        is_running=True,
        operator=operator.handle,
        reason=reason,
        at=now,
    )
    _publish_experiment(connection, record, version=state.version)


def set_experiment_running(
    connection: redis.Redis,
    *,
    operator: OperatorView,
    name: str,
    is_running: bool,
    reason: str,
    now: datetime,
) -> None:
    """Stop an experiment, or start it again with the same variants.

    Raises Forbidden, InvalidValue, NotFound, Conflict, RedisUnavailable.
    """
    _require_manager(operator)
    reason = require_reason(reason)
    state = read_experiment_state(connection)
    current = _find_experiment(state.entries, name)
    if current.is_running is is_running:
        raise Conflict("The experiment is already in this state. Reload the page.")
    record = ExperimentRecord(
        name=name,
        variants=current.variants,
        tenants=current.tenants,
        is_running=is_running,
        operator=operator.handle,
        reason=reason,
        at=now,
    )
    _publish_experiment(connection, record, version=state.version)


def _find_experiment(entries: Mapping[str, ExperimentRecord], name: str) -> ExperimentRecord:
    if name not in entries:
        raise NotFound("This experiment does not exist.")
    return entries[name]


def _publish_experiment(connection: redis.Redis, record: ExperimentRecord, *, version: str) -> None:
    change = ExperimentChange(
        schema=SCHEMA,
        name=record.name,
        tenants=record.tenants,
        variants=record.variants,
        is_running=record.is_running,
        operator=record.operator,
        reason=record.reason,
        at_ms=to_unix_ms(record.at),
    )
    data = encode_experiment(change)
    _STORE.change_entry(connection, record.name, data, is_set=True, version=version)
    logger.info(
        "operator.experiment_changed",
        experiment=record.name,
        is_running=record.is_running,
        operator=record.operator,
        reason=record.reason,
    )


def _require_manager(operator: OperatorView) -> None:
    if not operator.can_change:
        raise Forbidden("Your operator role does not allow you to change experiments.")


def _check_experiment(new: NewExperiment) -> None:
    """Check the names and variants, and that the tenants exist. Raises InvalidValue."""
    _check_name("name", new.name)
    names = [variant.name for variant in new.variants]
    if not 2 <= len(names) <= MAX_VARIANTS or len(set(names)) < len(names):
        raise InvalidValue(
            "variants", "Enter 2 to {most} variants with different names.", most=MAX_VARIANTS
        )
    for variant in new.variants:
        _check_variant(variant)
    known = set(Tenant.objects.filter(slug__in=new.tenants).values_list("slug", flat=True))
    if missing := sorted(set(new.tenants) - known):
        raise InvalidValue("tenants", "The tenant {slug} does not exist.", slug=ascii(missing[0]))


def _check_variant(variant: VariantEntry) -> None:
    _check_name("variants", variant.name)
    if not 1 <= variant.weight <= MAX_WEIGHT:
        raise InvalidValue("variants", "Enter weights from 1 to {most}.", most=MAX_WEIGHT)
    for value, known in (
        (variant.layout, LAYOUTS),
        (variant.ranking, RANKINGS),
        (variant.filter, FILTERS),
    ):
        if value not in (None, *known):
            raise InvalidValue("variants", "Choose one of: {names}.", names=", ".join(known))
    files, suffix = variant.files_share, variant.suffix_share
    shares = (
        DEFAULT_FILES_SHARE if files is None else files,
        DEFAULT_SUFFIX_SHARE if suffix is None else suffix,
    )
    # Rounded, because the sum of two floats can be slightly more than the exact sum.
    if min(shares) < 0 or round(sum(shares), 6) > MAX_SHARES:
        raise InvalidValue(
            "variants",
            "Enter shares of 0 or more that add up to at most {most}. The defaults are 0.3 and "
            "0.2.",
            most=MAX_SHARES,
        )


def _check_name(field: str, name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise InvalidValue(
            field, "Enter up to 40 lower-case letters, digits and hyphens, starting with a letter."
        )


def _decode(data: bytes) -> ExperimentRecord | None:
    """Decode a change; None: a newer version or something else has written it."""
    try:
        change = decode_experiment(data)
        at = from_unix_ms(change.at_ms)
    except (msgspec.DecodeError, OverflowError, ValueError):
        return None
    return ExperimentRecord(
        name=change.name,
        variants=change.variants,
        tenants=change.tenants,
        is_running=change.is_running,
        operator=change.operator,
        reason=change.reason,
        at=at,
    )
