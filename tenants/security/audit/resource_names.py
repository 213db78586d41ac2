"""The names behind the IDs of audit entries, for people.

Entries name people and resources by ID, because they outlive an erasure. The names come from
today's rows: a renamed team has its new name, and an erased user or a deleted resource has none.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from uuid import UUID

from django.db.models import Model, QuerySet

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.models import (
    ApiKey,
    AuditSink,
    Budget,
    ExportJob,
    Invitation,
    LegalHold,
    Membership,
    ScimToken,
    ScimUser,
    Team,
    Tenant,
)
from tenants.security.authorization.actor import Actor

_Names: TypeAlias = dict[str, str]


def find_resource_names(*, actor: Actor, references: Iterable[str]) -> dict[str, str]:
    """Return the names by reference, such as "team:0198...". Unknown references are left out.

    One query for each kind of resource, and one more if budgets are among them. Raises Forbidden.
    """
    actor.require(Permission.READ_AUDIT)
    keys_by_kind: dict[str, set[str]] = defaultdict(set)
    for reference in references:
        kind, _, key = reference.partition(":")
        if key and kind in _FINDERS:
            keys_by_kind[kind].add(key)
    with tenant_scope(actor.tenant_id):
        budgets = _find_budget_holders(actor, keys_by_kind.pop("budget", set()))
        for holder in filter(None, budgets.values()):
            kind, _, key = holder.partition(":")
            keys_by_kind[kind].add(key)
        names_by_kind = {
            f"{kind}:{key}": name
            for kind, keys in keys_by_kind.items()
            for key, name in _FINDERS[kind](actor, keys).items()
        }
    # The budget of the whole tenant has no holder and keeps its ID.
    return names_by_kind | {
        f"budget:{key}": names_by_kind[holder]
        for key, holder in budgets.items()
        if holder in names_by_kind
    }


def _make_name_query(
    model: type[Model], id_field: str, name_field: str, **filters: Any
) -> Callable[[Actor, set[str]], _Names]:
    def find(actor: Actor, keys: set[str]) -> _Names:
        values: Any = keys if id_field in ("lookup_id", "slug") else _read_ids(keys)
        scope = {"id": actor.tenant_id} if model is Tenant else {"tenant_id": actor.tenant_id}
        rows: QuerySet[Any] = model._default_manager.filter(
            **scope, **filters, **{f"{id_field}__in": values}
        )
        return {str(key): name for key, name in rows.values_list(id_field, name_field)}

    return find


def _find_budget_holders(actor: Actor, keys: set[str]) -> dict[str, str]:
    """Return the reference of each budget's holder; "": the whole tenant."""
    if not keys:
        return {}
    rows = Budget.objects.filter(tenant_id=actor.tenant_id, id__in=_read_ids(keys))
    return {
        str(key): f"{scope}:{holder}" if holder else ""
        for key, scope, holder in rows.values_list("id", "scope", "holder_id")
    }


def _read_ids(keys: Iterable[str]) -> list[UUID]:
    ids = []
    for key in keys:
        try:
            ids.append(UUID(key))
        except ValueError:  # an entry of an earlier release, or a reference that a URL contains
            continue
    return ids


_FINDERS: Final[Mapping[str, Callable[[Actor, set[str]], _Names]]] = MappingProxyType(
    {
        "audit_sink": _make_name_query(AuditSink, "id", "name"),
        "budget": lambda _actor, _keys: {},  # find_resource_names names it after its holder
        "export": _make_name_query(ExportJob, "id", "definition"),
        "hold": _make_name_query(LegalHold, "id", "name"),
        "invitation": _make_name_query(Invitation, "id", "email"),
        "key": _make_name_query(ApiKey, "lookup_id", "name"),
        "scim_token": _make_name_query(ScimToken, "id", "name"),
        "scim_user": _make_name_query(ScimUser, "id", "user_name"),
        "team": _make_name_query(Team, "id", "name"),
        "tenant": _make_name_query(Tenant, "slug", "name"),
        "user": _make_name_query(Membership, "user_id", "user__email", erased_at=None),
    }
)
