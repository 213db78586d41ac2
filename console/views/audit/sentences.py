"""Audit entries as sentences, with the names of people and resources.

A sentence has placeholders for the actor, the target and fields of the entry's change. For example,
`old_role` is the value before the change, and `role` is the value after it. If the entry has the
field only before the change, as after a deletion, `role` is that value. If the action has no
sentence, or the entry lacks a field of the sentence, a general sentence is used.

A reference names a resource by kind and ID, such as `team:ID` or `key:LOOKUP_ID`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.snapshot import TenantStatus
from console.texts.labels import ROLE_LABELS, TENANT_STATUS_LABELS
from console.texts.money_format import format_amount
from console.usage_filters.number_format import format_count
from tenants.base.permissions import Role
from tenants.compliance.exports.definitions.definitions import EXPORTS, PACK
from tenants.policy.data_classes import DATA_CLASSES
from tenants.security.audit.queries import AuditEntryView
from tenants.security.authorization.actor import ActorKind


@dataclass(frozen=True, slots=True)
class AuditArea:
    """Actions about one kind of resource, as the filter lists them."""

    title: Promise
    sentences: Mapping[str, Promise]  # by action


AREAS: Final = (
    AuditArea(
        _("Members and invitations"),
        {
            "member.added": _("{actor} added {target} with the role {role}."),
            "member.invitation_accepted": _("{target} joined with the role {role}."),
            "member.removed": _("{actor} removed {target} from the tenant."),
            "member.role_changed": _(
                "{actor} changed the role of {target} from {old_role} to {role}."
            ),
            "invitation.created": _("{actor} invited {target} with the role {role}."),
            "invitation.revoked": _("{actor} revoked the invitation of {target}."),
        },
    ),
    AuditArea(
        _("Teams"),
        {
            "team.created": _("{actor} created the team {name}."),
            "team.renamed": _("{actor} renamed the team {old_name} to {name}."),
            "team.deleted": _("{actor} deleted the team {name}."),
            "team.member_added": _("{actor} added {user_id} to the team {target}."),
            "team.member_removed": _("{actor} removed {user_id} from the team {target}."),
        },
    ),
    AuditArea(
        _("API keys"),
        {
            "key.created": _("{actor} created the API key {target}."),
            "key.rotated": _("{actor} rotated the API key {target}."),
            "key.revoked": _("{actor} revoked the API key {target}."),
            "key.ended": _("{actor} ended the API key {target}."),
            "key.old_text_ended": _("{actor} invalidated the old secret of the API key {target}."),
        },
    ),
    AuditArea(
        _("Sign-in"),
        {
            "password.changed": _("{target} changed their password."),
            "password.reset": _("{target} reset their password."),
            "password.reset_link_sent": _("{actor} sent {target} a link to reset their password."),
            "second_factor.added": _("{target} added a second factor: {factor}."),
            "second_factor.removed": _("{target} removed a second factor: {factor}."),
            "second_factor.renewed": _("{target} renewed a second factor: {factor}."),
            "second_factor.reset": _("{actor} reset a second factor of {target}: {factor}."),
            "mfa.required": _("{actor} made a second factor mandatory."),
            "mfa.made_optional": _("{actor} made a second factor optional."),
            "identity_provider.set": _("{actor} configured the identity provider."),
            "identity_provider.removed": _("{actor} removed the identity provider."),
            "sign_in.refused": _("A sign-in through the identity provider was rejected: {reason}."),
            "domain.claimed": _("{actor} added the domain {name}."),
            "domain.verified": _("{actor} verified the domain {name}."),
            "domain.given_up": _("{actor} released the domain {name}."),
        },
    ),
    AuditArea(
        _("SCIM provisioning"),
        {
            "scim_token.created": _("{actor} created the SCIM token {name}."),
            "scim_token.revoked": _("{actor} revoked the SCIM token {target}."),
            "scim_user.created": _("{actor} provisioned the user {target}."),
            "scim_user.changed": _("{actor} changed the provisioned user {target}."),
            "scim_user.deleted": _("{actor} removed the provisioned user {target}."),
            "scim_group.role_changed": _("{actor} changed the role of the group {target}."),
            "scim_group.members_changed": _(
                "{actor} changed the members of the group {target} "
                "from {old_num_members} to {num_members}."
            ),
        },
    ),
    AuditArea(
        _("Policies"),
        {
            "policy.changed": _("{actor} changed the policy."),
            "policy_override.changed": _("{actor} changed the policy override of {target}."),
        },
    ),
    AuditArea(
        _("Privacy and retention"),
        {
            "consent.changed": _("{actor} changed the consent of {target}."),
            "content.erasure_requested": _(
                "{actor} requested the erasure of captured content: {objects} objects."
            ),
            "training_data.exported": _("{actor} exported training data."),
            "retention.changed": _("{actor} changed the retention of {target}."),
            "retention.purged": _("{deleted} expired records were purged: {target}."),
            "hold.placed": _("{actor} placed the legal hold {name}."),
            "hold.released": _("{actor} released the legal hold {target}."),
            "data_subject.exported": _("{actor} exported the personal data of {target}."),
            "data_subject.erasure_requested": _("{actor} requested the erasure of {target}."),
            "data_subject.erased": _("The data of {target} was erased, certificate {certificate}."),
        },
    ),
    AuditArea(
        _("Billing and budgets"),
        {
            "billing.subscribed": _("{actor} subscribed the tenant to the plan {plan}."),
            "billing.invoice_issued": _("The invoice {target} was issued: {total_micros}."),
            "billing.credit_note_issued": _("The credit note {target} was issued: {total_micros}."),
            "billing.credit_granted": _("{actor} granted a credit of {amount_micros}."),
            "billing.profile_changed": _("{actor} changed the billing profile."),
            "billing.customer_changed": _("{actor} changed the recipient of invoices."),
            "budget.created": _("{actor} created the budget of {target}."),
            "budget.changed": _("{actor} changed the budget of {target}."),
            "budget.deleted": _("{actor} deleted the budget of {target}."),
            "budget.webhook_secret_read": _(
                "{actor} read the webhook secret of the budget of {target}."
            ),
        },
    ),
    AuditArea(
        _("Audit log and sinks"),
        {
            "audit.read": _("{actor} read the audit log."),
            "audit.exported": _("{actor} exported the audit log."),
            "audit.checked": _("{actor} verified the audit log."),
            "audit_sink.created": _("{actor} created the audit sink {name}."),
            "audit_sink.replayed": _(
                "{actor} sent the entries after {delivered_sequence} to the audit sink {target} "
                "again."
            ),
            "audit_sink.retried": _("{actor} retried the delivery to the audit sink {target}."),
            "audit_sink.tested": _("{actor} tested the audit sink {target}."),
            "audit_sink.deleted": _("{actor} deleted the audit sink {name}."),
        },
    ),
    AuditArea(
        _("Exports and reads"),
        {
            "export.requested": _("{actor} requested the export {definition}."),
            "export.finished": _("The export {target} was finished: {rows} rows."),
            "export.failed": _("The export {target} failed."),
            "export.cancelled": _("{actor} cancelled the export {target}."),
            "export.link_given": _("{actor} got a download link for the export {target}."),
            "export.downloaded": _("{actor} downloaded the export {target}."),
            "export.read": _("{actor} read the export {target}."),
            "request.explained": _("{actor} opened the request {target} of another user."),
            "request.listed": _("{actor} listed the requests of a few users."),
        },
    ),
    AuditArea(
        _("Tenant"),
        {
            "tenant.created": _("{actor} created the tenant {name}."),
            "tenant.renamed": _("{actor} renamed the tenant from {old_name} to {name}."),
            "tenant.status_changed": _(
                "{actor} changed the tenant’s status from {old_status} to {status}."
            ),
            "tenant.trial_changed": _("{actor} changed the last day of the tenant’s trial."),
            "tenant.cache_purged": _("{actor} purged the tenant’s prefix cache."),
            "tenant.region_changed": _(
                "{actor} changed the tenant’s region from {old_region} to {region}."
            ),
            "tenant.pool_assigned": _("{actor} assigned a pool to the tenant."),
            "tenant.pool_unassigned": _("{actor} removed a pool assignment of the tenant."),
            "tenant.limits_changed": _("{actor} changed the tenant’s limits."),
            "tenant.erasure_requested": _("{actor} requested the erasure of the tenant."),
            "tenant.erased": _("The tenant’s data was erased, certificate {certificate}."),
            "operator.looked": _("{actor} viewed the tenant’s data."),
            "reports.min_group_size_changed": _(
                "{actor} changed the smallest group in reports "
                "from {old_min_users} to {min_users} users."
            ),
            "encryption.tenant_key_replaced": _("{actor} replaced the tenant’s encryption key."),
            "encryption.tenant_key_rewrapped": _(
                "{actor} wrapped the tenant’s encryption key with another root key."
            ),
            "keys.destroyed_again": _(
                "{keys} encryption keys were destroyed again after a restore."
            ),
            "demonstration.begun": _("{actor} began to generate demonstration data."),
            "demonstration.filled": _("{actor} generated demonstration data."),
        },
    ),
)
_SENTENCES: Final = {
    action: sentence for area in AREAS for action, sentence in area.sentences.items()
}
ACTIONS: Final = frozenset(_SENTENCES)
# Sentences for entries whose actor is also the target.
_OWN_SENTENCES: Final[Mapping[str, Promise]] = {
    "member.removed": _("{actor} left the tenant."),
    "consent.changed": _("{actor} changed their consent."),
    "data_subject.exported": _("{actor} exported their personal data."),
}
_GENERAL_SENTENCE: Final = _("{actor}: {action}, {target}")
# Fields of a change that contain the ID of a user.
_PERSON_FIELDS: Final = ("user_id", "user", "owner_id")
_ROLES: Final = frozenset(role.value for role in Role)
_TENANT_STATUSES: Final = frozenset(status.value for status in TenantStatus)
_FACTORS: Final[Mapping[str, Promise]] = {
    "passkey": _("passkey"),
    "app": _("authenticator app"),
    "recovery_codes": _("recovery codes"),
}


def list_references(entry: AuditEntryView) -> Iterator[str]:
    """Yield the references to all resources that the entry's sentence may name."""
    yield entry.target
    if entry.actor_key:
        yield f"key:{entry.actor_key}"
    for change in (entry.before, entry.after):
        if isinstance(change, dict):
            yield from (f"user:{change[name]}" for name in _PERSON_FIELDS if change.get(name))


def write_sentence(entry: AuditEntryView, names: Mapping[str, str]) -> SafeString:
    """Return the entry as a sentence in HTML. `names` maps references to names."""
    wording = _SENTENCES.get(entry.action, _GENERAL_SENTENCE)
    if entry.target == f"user:{entry.actor_id}":
        wording = _OWN_SENTENCES.get(entry.action, wording)
    values = _find_values(entry, names, wording)
    if None in values.values():  # an earlier release wrote the entry, without one of the fields
        wording, values = _GENERAL_SENTENCE, _find_values(entry, names, _GENERAL_SENTENCE)
    return format_html(str(wording), **values)


def write_pattern(action: str) -> str:
    """Return an action's sentence with "…" for all values: "… removed … from the team …"."""
    wording = str(_SENTENCES[action])
    return wording.format_map(dict.fromkeys(_list_placeholders(wording), "…")).rstrip(".")


def name_actor(entry: AuditEntryView, names: Mapping[str, str]) -> str:
    """Return the actor's name. `names` maps references to names.

    `actor_key` is the lookup ID of an API key, `operator:` with a handle, or `scim:` with the
    beginning of a SCIM token's ID.
    """
    if entry.actor_email:
        return entry.actor_email
    if entry.actor_key and entry.actor_key.startswith("operator:"):
        return gettext("Operator %(handle)s") % {"handle": entry.actor_key.partition(":")[2]}
    if entry.actor_key and entry.actor_key.startswith("scim:"):
        return gettext("SCIM provisioning")
    if entry.actor_key:
        return names.get(f"key:{entry.actor_key}", entry.actor_key)
    if entry.actor_kind is ActorKind.PLATFORM:
        return gettext("Platform")
    return gettext("Erased user")


def name_target(entry: AuditEntryView, names: Mapping[str, str]) -> str:
    """Return the target's name. `names` maps references to names."""
    kind, _colon, resource_id = entry.target.partition(":")
    if kind == "user":
        return names.get(entry.target) or gettext("Erased user")
    if kind == "retention":
        titles = {data_class.value: terms.title for data_class, terms in DATA_CLASSES.items()}
        return gettext(titles[resource_id]) if resource_id in titles else resource_id
    if kind == "export":
        return _name_export(names.get(entry.target, resource_id))
    if kind == "budget":
        return names.get(entry.target) or _name_holder(entry)
    return names.get(entry.target) or resource_id or entry.target


def _name_export(definition: str) -> str:
    if definition == PACK:
        return gettext("Evidence pack")
    return gettext(EXPORTS[definition].title) if definition in EXPORTS else definition


def _name_holder(entry: AuditEntryView) -> str:
    """Return the holder of a budget that has no name in `names`.

    For the budget of the whole tenant, return "the whole tenant". For other budgets, whose team or
    user no longer exists, return the budget's ID.
    """
    change = entry.after or entry.before
    is_for_tenant = isinstance(change, dict) and change.get("scope") == "tenant"
    return gettext("the whole tenant") if is_for_tenant else entry.target.partition(":")[2]


def _find_values(
    entry: AuditEntryView, names: Mapping[str, str], wording: Promise
) -> dict[str, SafeString | None]:
    """Return the values of the wording's placeholders; None: the entry lacks the field."""
    before = entry.before if isinstance(entry.before, dict) else {}
    after = entry.after if isinstance(entry.after, dict) else {}
    fields = {**before, **after, **{f"old_{name}": value for name, value in before.items()}}
    # These also exist for entries without a change.
    general_values = {
        "action": format_html("<code>{}</code>", entry.action),
        "actor": _emphasize(name_actor(entry, names), entry.actor_key or str(entry.actor_id or "")),
        "target": _emphasize(name_target(entry, names), entry.target),
    }
    return general_values | {
        name: _format_value(name, fields[name], names, fields.get("currency"))
        if name in fields
        else None
        for name in _list_placeholders(str(wording))
        if name not in general_values
    }


def _list_placeholders(wording: str) -> list[str]:
    return [name for _text, name, _spec, _conversion in Formatter().parse(wording) if name]


def _format_value(name: str, value: Any, names: Mapping[str, str], currency: Any) -> SafeString:
    """Return the value of a change's field as HTML.

    `currency` is the value of the change's field `currency`; None: there is no such field.
    """
    if name in _PERSON_FIELDS and value:
        return _emphasize(names.get(f"user:{value}") or gettext("Erased user"), str(value))
    if name.endswith("_micros") and isinstance(value, int) and currency:
        return _emphasize(format_amount(value, currency))
    if isinstance(value, int):
        return _emphasize(format_count(value))
    name = name.removeprefix("old_")
    if name == "definition":
        return _emphasize(_name_export(str(value)), str(value))
    text = "–" if value is None or value == "" else str(value)
    if name == "role" and text in _ROLES:
        return _emphasize(str(ROLE_LABELS[Role(text)]))
    if name == "status" and text in _TENANT_STATUSES:
        return _emphasize(str(TENANT_STATUS_LABELS[TenantStatus(text)]))
    return _emphasize(str(_FACTORS.get(text, text) if name == "factor" else text))


def _emphasize(text: str, reference: str = "") -> SafeString:
    """Return the text in bold. The tooltip is the `reference` that the text replaces, if any."""
    if not reference or reference == text:
        return format_html("<b>{}</b>", text)
    return format_html('<b title="{}">{}</b>', reference, text)
