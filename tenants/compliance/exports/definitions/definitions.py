"""Registry of all exports by name.

All formats, and pages that show the same rows, use the same definition. If the meaning of a column
changes, increase the definition's version. Register the exports of a new module in _ALL.
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

# The evidence pack: all exports in one ZIP, see jobs.files.evidence_pack. It is not in EXPORTS,
# because it has no rows of its own.
PACK: Final = "evidence_pack"
PACK_VERSION: Final = 1
PACK_MEDIA: Final = "zip"
