"""Registry of all exports by name.

All formats, and pages that show the same rows, use the same definition. If the meaning of a column
changes, increase the definition's version. Register another module's exports in _ALL.
"""

from types import MappingProxyType
from typing import Final

from tenants.compliance.exports.definitions import (
    audit_log,
    invoices,
    members_and_keys,
    policies_and_consent,
    processing_records,
    retention,
    usage,
)

_ALL: Final = (
    *usage.EXPORTS,
    *retention.EXPORTS,
    *audit_log.EXPORTS,
    *members_and_keys.EXPORTS,
    *policies_and_consent.EXPORTS,
    *invoices.EXPORTS,
    *processing_records.EXPORTS,
)
EXPORTS: Final = MappingProxyType({export.name: export for export in _ALL})

# All exports in one ZIP, see jobs.files.evidence_pack. It has no rows of its own.
PACK: Final = "evidence_pack"
PACK_VERSION: Final = 1
PACK_MEDIA: Final = "zip"
