"""The values of a policy as text, and the differences between two policies."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caret.contracts.policy import TenantPolicy
from console.views.policies.presenters import FIELDS, SECTIONS
from tenants.policy.access_explanation import NamedOverride
from tenants.policy.three_way_merge import list_changed_fields


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A field of a policy with its value."""

    name: str  # of the field in TenantPolicy
    title: str
    meaning: str
    lines: list[str]  # the formatted value
    decided_by: list[NamedOverride]  # overrides that set the value; empty: the tenant's policy does
    notes: list[str]  # why the field is not enforced, or which models are no longer offered


@dataclass(frozen=True, slots=True)
class ValueGroup:
    title: str  # of the section
    values: list[FieldValue]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field, with the lines of its old and its new value."""

    title: str
    removed: list[str]  # only in the old value
    added: list[str]  # only in the new value
    unchanged: list[str]


def list_value_groups(
    policy: TenantPolicy,
    decided_by: Mapping[str, list[NamedOverride]] | None = None,
    *,
    notes: Mapping[str, list[str]] | None = None,
) -> list[ValueGroup]:
    """Return all fields by section. `decided_by` and `notes` map names of fields to their values.

    Without `decided_by`, the tenant's policy sets all values.
    """
    overrides_by_field, notes_by_field = decided_by or {}, notes or {}
    return [
        ValueGroup(
            str(section.title),
            [
                FieldValue(
                    field.name,
                    str(field.title),
                    str(field.meaning),
                    field.lines(policy),
                    overrides_by_field.get(field.name, []),
                    notes_by_field.get(field.name, []),
                )
                for field in section.fields
            ],
        )
        for section in SECTIONS
    ]


def changes_between(before: TenantPolicy, after: TenantPolicy) -> list[FieldChange]:
    changed_names = set(list_changed_fields(before, after))
    return [
        change_of(str(field.title), field.lines(before), field.lines(after))
        for field in FIELDS.values()
        if field.name in changed_names
    ]


def change_of(title: str, before: list[str], after: list[str]) -> FieldChange:
    return FieldChange(
        title,
        removed=[line for line in before if line not in after],
        added=[line for line in after if line not in before],
        unchanged=[line for line in after if line in before],
    )


def titles_of(names: Iterable[str]) -> list[str]:
    """Return the titles of fields of TenantPolicy."""
    return [str(FIELDS[name].title) for name in names]
