"""Data classes: the purpose, legal basis and retention of each class. Pure.

Retention counts days from a record's creation; in the retrieval index, from its last use. For some
classes, a tenant can choose a number of days between the minimum and the maximum. For some tables,
the database also enforces the minimum (DeletableAfter in tenants.models). An erasure deletes
records earlier, and a legal hold keeps them longer.
"""

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from django.utils.translation import gettext_noop


class DataClass(StrEnum):
    USAGE = "usage_records"
    AUDIT = "audit_entries"
    CONTENT = "captured_content"
    CONTENT_INDEX = "captured_content_index"
    RETRIEVAL = "retrieval_index"
    IDEMPOTENCY = "idempotency_records"  # stored responses of the REST API
    SESSIONS = "sessions"
    LOGS = "logs"


@dataclass(frozen=True, slots=True)
class DataClassTerms:
    # Title, purpose, legal basis and surface are English texts, which the console translates.
    title: str
    purpose: str
    legal_basis: str  # article of the GDPR
    # Days of retention: the default, and the limits of a tenant's choice.
    default_days: int
    min_days: int
    max_days: int
    surface: str  # where the records are stored
    is_purged: bool = True  # False: a purge neither counts nor deletes these records

    @property
    def is_overridable(self) -> bool:
        """Return True if a retention rule or the policy's `retention_days` can set the days."""
        return self.is_purged and self.min_days < self.max_days


_CONSENT: Final = gettext_noop("consent (GDPR Art. 6(1)(a))")
_CONTRACT: Final = gettext_noop("contract (GDPR Art. 6(1)(b))")
_INTEREST: Final = gettext_noop("legitimate interest (GDPR Art. 6(1)(f))")
_DUTY: Final = gettext_noop("legal obligation (GDPR Art. 6(1)(c))")

DATA_CLASSES: Final = MappingProxyType(
    {
        DataClass.USAGE: DataClassTerms(
            title=gettext_noop("Usage records"),
            purpose=gettext_noop(
                "Billing, limits and reports. Counts for each request, never code."
            ),
            legal_basis=_CONTRACT,
            default_days=400,  # about thirteen months
            # Two months, so that the records of a month still exist while its invoice is issued and
            # can be disputed.
            min_days=62,
            max_days=3_653,  # ten years
            surface="Postgres",
        ),
        DataClass.AUDIT: DataClassTerms(
            title=gettext_noop("Audit entries"),
            purpose=gettext_noop("Records who changed or viewed what."),
            legal_basis=_DUTY,
            default_days=2_557,  # seven years
            min_days=366,  # a year
            max_days=3_653,  # ten years
            surface="Postgres",
        ),
        # The tenant's policy for content capture sets the days of CONTENT and CONTENT_INDEX. A
        # withdrawal of consent erases the content at once.
        DataClass.CONTENT: DataClassTerms(
            title=gettext_noop("Captured content"),
            purpose=gettext_noop(
                "Encrypted prompts, completions and edits of users who consented."
            ),
            legal_basis=_CONSENT,
            default_days=30,
            min_days=1,
            max_days=365,
            surface=gettext_noop("object storage"),
            is_purged=False,
        ),
        DataClass.CONTENT_INDEX: DataClassTerms(
            title=gettext_noop("Captured content index"),
            purpose=gettext_noop("Lists captured content and its users, without the content."),
            legal_basis=_CONSENT,
            default_days=30,
            min_days=1,
            max_days=365,
            surface="Postgres",
            is_purged=False,
        ),
        DataClass.RETRIEVAL: DataClassTerms(
            title=gettext_noop("Retrieval index"),
            purpose=gettext_noop(
                "Encrypted parts of files that completions can use, for tenants that allow it."
            ),
            legal_basis=_CONSENT,
            default_days=30,
            min_days=1,
            max_days=90,
            surface="Postgres",
        ),
        DataClass.IDEMPOTENCY: DataClassTerms(
            title=gettext_noop("Idempotency records"),
            purpose=gettext_noop("Ensures that a repeated API request takes effect only once."),
            legal_basis=_CONTRACT,
            default_days=1,
            min_days=1,
            max_days=1,
            surface="Postgres",
        ),
        DataClass.SESSIONS: DataClassTerms(
            title=gettext_noop("Sessions"),
            purpose=gettext_noop("Keeps users signed in."),
            legal_basis=_CONTRACT,
            default_days=14,
            min_days=14,
            max_days=14,
            surface="Postgres",
            is_purged=False,
        ),
        DataClass.LOGS: DataClassTerms(
            title=gettext_noop("Logs"),
            purpose=gettext_noop("Operation of the platform. No content, no IP addresses."),
            legal_basis=_INTEREST,
            default_days=30,
            min_days=0,
            max_days=30,
            surface=gettext_noop("the operator's log storage"),
            is_purged=False,
        ),
    }
)
