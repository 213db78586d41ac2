"""Selection of the pool for a request: by tier, language, and model.

Operators assign pools to tenants and publish a catalogue of models. Policies state which of these
models a user may use. The snapshot contains all of this, so a selection needs only a few dictionary
look-ups. Rules:

1. A request that names a model gets this model, or an error. The name has no effect if the tier has
   no published model, or if the name means the default (DEFAULT_MODEL_NAMES).
2. Otherwise the policy's default model for the language is used, then the pool that operators have
   assigned, then the first model of the catalogue that the policy allows. Without a published
   model, the tier's first shared pool takes the place of the catalogue.
3. Edits that name no model use the first pool of rule 2 whose model has a prompt format for edits.
   Without a published model, the tier's other pools follow.
4. A pool that is dedicated to another tenant is never used, even if an assignment or a catalogue
   names it. No response shows that such a pool exists.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final, TypeVar

from caret.contracts.api_key import parse_key
from caret.contracts.policy import ANY_LANGUAGE, Mode, Tier
from caret.contracts.snapshot import TenantSnapshot
from caret.foundation.ids import TenantId
from inference.completion.request import Principal, tier_of
from inference.completion.request_trace import DEFAULT_MODEL_NAME
from inference.errors import CompletionError, EngineError, ForbiddenRequest, UnknownModel
from inference.pools.pool_config import Pool, PoolConfig

# Requests with these names get the default model. Some editors require a name; Caret's settings for
# them contain DEFAULT_MODEL_NAME.
DEFAULT_MODEL_NAMES: Final = frozenset(["", DEFAULT_MODEL_NAME, "default"])
# Names that an error message may repeat.
_NAME: Final = re.compile(r"[\w./:@+-]{1,128}", re.ASCII)
Value = TypeVar("Value")


class PoolSelector:
    def __init__(
        self, pools: PoolConfig, may_use_pool: Callable[[str, TenantId], bool] = lambda *_: True
    ) -> None:
        """`may_use_pool` gets the name of a pool and a tenant ID.

        It returns False if operators have dedicated the pool to another tenant.
        """
        self._pools = pools
        self._may_use_pool = may_use_pool

    def select(
        self,
        snapshot: TenantSnapshot,
        tier: Tier,
        *,
        language: str,
        model: str,
        is_edit: bool = False,
    ) -> str:
        """Return the name of the pool. `model` is the name in the request; "": none.

        Raises UnknownModel (`model_not_found`), ForbiddenRequest (`model_not_allowed`,
        `mode_unavailable`), EngineError (`no_pool`).
        """
        if model not in DEFAULT_MODEL_NAMES and tier in snapshot.models:
            pool = self._select_named(snapshot, tier, language, model)
            if is_edit and pool.edit_format is None:
                raise _build_mode_unavailable_error()
            return pool.name
        if is_edit:
            return self._select_for_edit(snapshot, tier, language)
        for pool in self._find_candidates(snapshot, tier, language):
            if _is_allowed(snapshot, pool.model):
                return pool.name
        raise self._build_no_pool_error(snapshot, tier)

    def find_modes(self, principal: Principal) -> frozenset[Mode]:
        """Return the modes that the principal can request.

        Key and policy must allow the modes. Edits also need a model that can propose edits.
        """
        snapshot, tier = principal.snapshot, tier_of(Mode.EDIT)
        pools = chain(
            self._find_edit_pools(snapshot, tier, ANY_LANGUAGE),
            self._list_assigned(snapshot, tier),
        )
        if any(pool.edit_format and _is_allowed(snapshot, pool.model) for pool in pools):
            return principal.modes
        return principal.modes - {Mode.EDIT}

    def _select_for_edit(self, snapshot: TenantSnapshot, tier: Tier, language: str) -> str:
        for pool in self._find_edit_pools(snapshot, tier, language):
            if pool.edit_format and _is_allowed(snapshot, pool.model):
                return pool.name
        raise _build_mode_unavailable_error()

    def _find_edit_pools(
        self, snapshot: TenantSnapshot, tier: Tier, language: str
    ) -> Iterator[Pool]:
        """Yield the pools for an edit request that names no model, best first.

        Without a published model, all usable pools of the tier follow: the first shared pool serves
        blocks and chats, and another pool may serve edits.
        """
        yield from self._find_candidates(snapshot, tier, language)
        if tier not in snapshot.models:
            for name in self._pools.by_name:
                if (pool := self._find_usable(snapshot, tier, name)) is not None:
                    yield pool

    def find_default_model(self, snapshot: TenantSnapshot, tier: Tier) -> str | None:
        """Return the model of requests that name none; None if the policy allows no model."""
        candidates = self._find_candidates(snapshot, tier, ANY_LANGUAGE)
        return next((pool.model for pool in candidates if _is_allowed(snapshot, pool.model)), None)

    def list_models(self, snapshot: TenantSnapshot, tier: Tier) -> list[str]:
        """Return the models that requests in this tier may use, the default first."""
        models = [pool.model for pool in self._find_candidates(snapshot, tier, ANY_LANGUAGE)]
        models += [pool.model for pool in self._list_assigned(snapshot, tier)]
        return [name for name in dict.fromkeys(models) if _is_allowed(snapshot, name)]

    def _select_named(
        self, snapshot: TenantSnapshot, tier: Tier, language: str, model: str
    ) -> Pool:
        pool = self._find_pool_of_model(snapshot, tier, language, model)
        if pool is None:
            raise self._build_unknown_model_error(snapshot, tier, model)
        if not _is_allowed(snapshot, model):
            raise ForbiddenRequest(
                "model_not_allowed",
                f"The policy does not allow the model{_show_name(model)}.",
                param="model",
            )
        return pool

    def _find_candidates(
        self, snapshot: TenantSnapshot, tier: Tier, language: str
    ) -> Iterator[Pool]:
        """Yield the pools for a request that names no model, best first. The policy is not checked.

        A pool may occur twice.
        """
        default_model = _find_for_language(snapshot.policy.default_models.get(tier), language)
        if default_model is not None:
            pool = self._find_pool_of_model(snapshot, tier, language, default_model)
            if pool is not None:
                yield pool
        if (assigned := self._find_assigned(snapshot, tier, language)) is not None:
            yield assigned
        published_models = snapshot.models.get(tier)
        if published_models is None:
            yield from self._find_shared(snapshot, tier)
            return
        for model in published_models:
            pool = self._find_pool_of_model(snapshot, tier, language, model)
            if pool is not None:
                yield pool

    def _find_pool_of_model(
        self, snapshot: TenantSnapshot, tier: Tier, language: str, model: str
    ) -> Pool | None:
        """Return the pool to use for a model; None if no usable pool serves it."""
        assigned = self._find_assigned(snapshot, tier, language)
        if assigned is not None and assigned.model == model:
            return assigned
        for name in snapshot.models.get(tier, {}).get(model, ()):
            pool = self._find_usable(snapshot, tier, name)
            if pool is not None and pool.model == model:
                return pool
        assigned_pools = self._list_assigned(snapshot, tier)
        return next((pool for pool in assigned_pools if pool.model == model), None)

    def _find_assigned(self, snapshot: TenantSnapshot, tier: Tier, language: str) -> Pool | None:
        """Return the tenant's pool, assigned at runtime or in the pools file; None: neither."""
        for name in (
            _find_for_language(snapshot.pools.get(tier), language),
            self._pools.find_dedicated(snapshot.slug, tier),
        ):
            if name is not None and (pool := self._find_usable(snapshot, tier, name)) is not None:
                return pool
        return None

    def _list_assigned(self, snapshot: TenantSnapshot, tier: Tier) -> Iterator[Pool]:
        """Yield the pools that operators assigned at runtime, for any language."""
        for name in snapshot.pools.get(tier, {}).values():
            pool = self._find_usable(snapshot, tier, name)
            if pool is not None:
                yield pool

    def _find_shared(self, snapshot: TenantSnapshot, tier: Tier) -> Iterator[Pool]:
        """Yield the tier's first shared pool, unless it is dedicated to another tenant by now."""
        pool = self._find_usable(snapshot, tier, self._pools.find_shared(tier).name)
        if pool is not None:
            yield pool

    def _find_usable(self, snapshot: TenantSnapshot, tier: Tier, name: str) -> Pool | None:
        """Return the pool; None if it is missing, has another tier, or is not for this tenant."""
        pool = self._pools.by_name.get(name)
        if pool is None or pool.tier is not tier:
            return None
        if pool.tenants and snapshot.slug not in pool.tenants:
            return None
        return pool if self._may_use_pool(name, snapshot.tenant_id) else None

    def _build_unknown_model_error(
        self, snapshot: TenantSnapshot, tier: Tier, model: str
    ) -> CompletionError:
        named = f"The model{_show_name(model)}"
        other_tiers = (other for other in Tier if other is not tier)
        if any(model in self.list_models(snapshot, other) for other in other_tiers):
            return ForbiddenRequest(
                "model_not_allowed",
                f"{named} does not serve requests of the tier {tier}.",
                param="model",
            )
        return UnknownModel(
            _show_name(model).strip(),
            f"{named} does not exist. GET /v1/models lists the models that this key can use.",
        )

    def _build_no_pool_error(self, snapshot: TenantSnapshot, tier: Tier) -> CompletionError:
        pool = next(self._find_candidates(snapshot, tier, ANY_LANGUAGE), None)
        if pool is not None:
            return ForbiddenRequest(
                "model_not_allowed", f"The policy does not allow the model{_show_name(pool.model)}."
            )
        return EngineError(
            "no_pool", f"No model serves the tier {tier} for this tenant.", http_status=503
        )


def _build_mode_unavailable_error() -> ForbiddenRequest:
    return ForbiddenRequest("mode_unavailable", "No model of this tenant can propose edits.")


def _is_allowed(snapshot: TenantSnapshot, model: str) -> bool:
    allowed = snapshot.policy.models
    return allowed is None or model in allowed


def _find_for_language(entries: Mapping[str, Value] | None, language: str) -> Value | None:
    """Return the entry of the language, or else the entry of any language; None: neither exists."""
    if not entries:
        return None
    return entries.get(language) or entries.get(ANY_LANGUAGE)


def _show_name(name: str) -> str:
    """Return a space and the model's name, for an error; "" if it could be code or an API key."""
    return f" {name}" if _NAME.fullmatch(name) and parse_key(name) is None else ""
