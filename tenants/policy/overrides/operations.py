"""Says something of a team or a user: a new version with a reason, never an edit."""

from datetime import datetime
from typing import Final

from caret.contracts.policy import PolicyLayer
from caret.foundation.postgres.tenant_scope import tenant
from tenants.base.errors import Conflict, Outdated
from tenants.base.permissions import Permission
from tenants.fleet.snapshots.publisher import tenant_changed
from tenants.models import PolicyLayerVersion
from tenants.policy.operations import require_reason
from tenants.policy.overrides.document import read_layer, write_layer
from tenants.policy.overrides.queries import LayerInForce, Subject, find_layer, read_layers
from tenants.security.audit.operations import Facts, record_change
from tenants.security.authorization.actor import Actor

# In force in one tenant, in its snapshot.
MAX_LAYERS: Final = 1_000
MAX_GLOBS: Final = 5_000  # of all layers together


def set_layer(
    *,
    actor: Actor,
    subject: Subject,
    document: object,
    reason: str,
    now: datetime,
    replaces: int | None = None,
) -> LayerInForce:
    """Gateways know it at once. An empty document lifts what was said.

    `replaces` is the version that the author has seen, 0 where there was none; None: whichever is
    in force. Raises Forbidden, Invalid, NotFound, Conflict, and Outdated when another one is in
    force by now.
    """
    actor.require(Permission.WRITE_POLICY)
    layer = read_layer(document)
    reason = require_reason(reason)
    with tenant(actor.tenant_id):
        tenant_changed(tenant_id=actor.tenant_id)  # locks the tenant
        held = find_layer(actor=actor, subject=subject)
        if replaces not in (None, held.version):
            raise Outdated(held=held.version, replaced=replaces)
        _require_room(actor, subject, layer)
        _insert(actor, held, layer, reason, now)
        record_change(
            actor=actor,
            action="policy.layer_changed",
            target=f"{subject.kind}:{subject.id}",
            change=(_facts(held.layer), _facts(layer)),
            reason=reason,
            now=now,
        )
        return find_layer(actor=actor, subject=subject)


def _require_room(actor: Actor, subject: Subject, layer: PolicyLayer) -> None:
    """Raises Conflict."""
    in_force = read_layers(tenant_id=actor.tenant_id).of
    if layer != PolicyLayer() and subject not in in_force and len(in_force) >= MAX_LAYERS:
        raise Conflict("Something is said of {most} teams and users already.", most=MAX_LAYERS)
    others = (each.layer for each in in_force.values() if each.subject != subject)
    if sum(map(_num_globs, (*others, layer))) > MAX_GLOBS:
        raise Conflict("All layers together exclude by {most} patterns at most.", most=MAX_GLOBS)


def _num_globs(layer: PolicyLayer) -> int:
    return sum(map(len, layer.content_exclusion.values()))


def _insert(
    actor: Actor, held: LayerInForce, layer: PolicyLayer, reason: str, now: datetime
) -> None:
    PolicyLayerVersion.objects.create(
        tenant_id=actor.tenant_id,
        subject_kind=held.subject.kind,
        subject_id=held.subject.id,
        version=held.version + 1,
        document=write_layer(layer),
        author_id=actor.user_id,
        author_key=actor.key or "",
        reason=reason,
        created_at=now,
    )


def _facts(layer: PolicyLayer) -> Facts:
    return {"layer": write_layer(layer)}
