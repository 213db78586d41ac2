"""All tables. Each module contains tables that belong together.

In a table with tenants' rows, the primary key begins with `tenant_id`, and so does each other
unique key. Otherwise, a conflict would reveal to one tenant that another tenant has the same value.
Foreign keys between such tables also contain `tenant_id`. Otherwise, a row could refer to a row of
another tenant, because Postgres checks foreign keys without row security. Django cannot declare
such foreign keys, so the migrations create them.
"""

from tenants.models.api_key import ApiKey
from tenants.models.audit import AuditEntry, AuditHead, AuditSink, SignedAuditHead
from tenants.models.budget import AlertDelivery, Budget, BudgetAlert, MonthSpend
from tenants.models.content_capture import ConsentReceipt, ContentErasure, ContentObject
from tenants.models.encryption_key import DataKey, RootKeyUse, TenantKey
from tenants.models.erasure import Erasure
from tenants.models.export_job import ExportJob, ExportObject
from tenants.models.idempotency_record import IdempotencyRecord
from tenants.models.installation import CapabilityChange, CatalogModel, Evaluation, PoolAssignment
from tenants.models.ledger import (
    BillingProfile,
    Invoice,
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
)
from tenants.models.membership import Invitation, Membership, Team, TeamMembership
from tenants.models.plan import Plan, PriceVersion
from tenants.models.policy import PolicyOverrideVersion, PolicyVersion
from tenants.models.retention import (
    DeletionCertificate,
    LegalHold,
    PurgeRun,
    RetentionRule,
)
from tenants.models.retrieval_chunk import RetrievalChunk
from tenants.models.rollup import (
    DirtyHour,
    LatencyDay,
    LatencyHour,
    RollupState,
    UsageDay,
    UsageHour,
)
from tenants.models.scim import ScimGroup, ScimGroupMember, ScimToken, ScimUser
from tenants.models.sign_in import Domain, IdentityProvider, SignInProtocol, VerifiedDomain
from tenants.models.stripe_meter_event import StripeCustomer, StripeEvent
from tenants.models.subscription import BillingState, Subscription, UsageBatchCounter
from tenants.models.tenant import Tenant
from tenants.models.usage import Outcome, TypingReport, UsageRecord
from tenants.models.user import Operator, OperatorKey, User

__all__ = [
    "AlertDelivery",
    "ApiKey",
    "AuditEntry",
    "AuditHead",
    "AuditSink",
    "BillingProfile",
    "BillingState",
    "Budget",
    "BudgetAlert",
    "CapabilityChange",
    "CatalogModel",
    "ConsentReceipt",
    "ContentErasure",
    "ContentObject",
    "DataKey",
    "DeletionCertificate",
    "DirtyHour",
    "Domain",
    "Erasure",
    "Evaluation",
    "ExportJob",
    "ExportObject",
    "IdempotencyRecord",
    "IdentityProvider",
    "Invitation",
    "Invoice",
    "LatencyDay",
    "LatencyHour",
    "LedgerAccount",
    "LedgerEntry",
    "LedgerTransaction",
    "LegalHold",
    "Membership",
    "MonthSpend",
    "Operator",
    "OperatorKey",
    "Outcome",
    "Plan",
    "PolicyOverrideVersion",
    "PolicyVersion",
    "PoolAssignment",
    "PriceVersion",
    "PurgeRun",
    "RetentionRule",
    "RetrievalChunk",
    "RollupState",
    "RootKeyUse",
    "ScimGroup",
    "ScimGroupMember",
    "ScimToken",
    "ScimUser",
    "SignInProtocol",
    "SignedAuditHead",
    "StripeCustomer",
    "StripeEvent",
    "Subscription",
    "Team",
    "TeamMembership",
    "Tenant",
    "TenantKey",
    "TypingReport",
    "UsageBatchCounter",
    "UsageDay",
    "UsageHour",
    "UsageRecord",
    "User",
    "VerifiedDomain",
]
