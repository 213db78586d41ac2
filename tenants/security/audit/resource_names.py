"""Names for the IDs in audit entries.

Entries contain only the IDs of people and resources, because entries remain after an erasure. The
names come from the current rows: a renamed team has its new name, and an erased user or a deleted
resource has none.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from uuid import UUID

from django.db.models import Model, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast, Coalesce

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

# Takes IDs as texts. Returns the rows with these IDs, with the columns of _COLUMNS except
# resource_kind.
_NameQuery: TypeAlias = Callable[[Actor, set[str]], QuerySet[Any]]
# The columns of each name query. All name queries together are one UNION.
_COLUMNS: Final = ("resource_kind", "resource_id", "resource_name")
_TEXT_ID_FIELDS: Final = frozenset({"lookup_id", "slug"})  # all others contain UUIDs


def find_resource_names(*, actor: Actor, references: Iterable[str]) -> dict[str, str]:
    """Return names by reference, such as "team:0198...". References without a name are left out.

    One query. Raises Forbidden.
    """
    actor.require(Permission.READ_AUDIT)
    ids_by_kind: dict[str, set[str]] = defaultdict(set)
    for reference in references:
        kind, _, id_text = reference.partition(":")
        if id_text and kind in _QUERIES:
            ids_by_kind[kind].add(id_text)
    queries = [
        _QUERIES[kind](actor, id_texts)
        .annotate(resource_kind=Value(kind, output_field=TextField()))
        .values_list(*_COLUMNS)
        for kind, id_texts in sorted(ids_by_kind.items())
    ]
    if not queries:
        return {}
    with tenant_scope(actor.tenant_id):
        rows = list(queries[0].union(*queries[1:], all=True))
    return {f"{kind}:{id_text}": name for kind, id_text, name in rows if name is not None}


def _make_name_query(
    model: type[Model], id_field: str, name_field: str, **filters: Any
) -> _NameQuery:
    """Return the name query of a kind. `filters` are further conditions on the rows."""

    def build_query(actor: Actor, id_texts: set[str]) -> QuerySet[Any]:
        values: Any = id_texts if id_field in _TEXT_ID_FIELDS else _parse_ids(id_texts)
        scope = {"id": actor.tenant_id} if model is Tenant else {"tenant_id": actor.tenant_id}
        rows: QuerySet[Any] = model._default_manager.filter(
            **scope, **filters, **{f"{id_field}__in": values}
        )
        named_rows: QuerySet[Any] = rows.annotate(
            resource_id=Cast(id_field, TextField()), resource_name=Cast(name_field, TextField())
        )
        return named_rows

    return build_query


def _query_budget_holders(actor: Actor, id_texts: set[str]) -> QuerySet[Any]:
    """Name budgets after their holders. The budget of the whole tenant has no name (NULL)."""
    teams = Team.objects.filter(tenant_id=actor.tenant_id, id=OuterRef("holder_id"))
    users = Membership.objects.filter(
        tenant_id=actor.tenant_id, user_id=OuterRef("holder_id"), erased_at=None
    )
    holder_name = Coalesce(
        Subquery(teams.values("name")),
        Subquery(users.values("user__email")),
        output_field=TextField(),
    )
    rows = Budget.objects.filter(tenant_id=actor.tenant_id, id__in=_parse_ids(id_texts))
    return rows.annotate(resource_id=Cast("id", TextField()), resource_name=holder_name)


def _parse_ids(id_texts: Iterable[str]) -> list[UUID]:
    """Return the UUIDs. Texts that are no UUIDs are left out."""
    ids = []
    for text in id_texts:
        try:
            ids.append(UUID(text))
        except ValueError:  # an earlier release's entry, or text from a URL
            continue
    return ids


_QUERIES: Final[Mapping[str, _NameQuery]] = MappingProxyType(
    {
        "audit_sink": _make_name_query(AuditSink, "id", "name"),
        "budget": _query_budget_holders,
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
