"""The rules that decide which files of a tenant's repositories may be indexed."""

from dataclasses import dataclass

from caret.contracts.content_exclusion import is_excluded, is_indexing_allowed
from caret.contracts.policy import Isolation, TenantPolicy
from caret.contracts.retrieval import RetrievalScope
from caret.contracts.snapshot import TenantStatus


@dataclass(frozen=True, slots=True)
class IndexingRules:
    """The tenant's status and policy, which together allow a file or not."""

    status: TenantStatus
    policy: TenantPolicy

    def allows_repository(self, scope: RetrievalScope) -> bool:
        """Return whether files in the scope may be indexed.

        After a change of isolation, no file that was indexed before is allowed. In strict
        isolation, there is no index of the whole tenant. Without strict isolation, a user's files
        that were indexed for this user alone must not become visible to others.
        """
        is_strict = self.policy.isolation is Isolation.STRICT
        return (
            self.status is TenantStatus.ACTIVE
            and bool(scope.holder) is is_strict  # "": the whole tenant is the holder
            and is_indexing_allowed(self.policy, repository=scope.repository)
        )

    def allows_file(self, scope: RetrievalScope, path: str) -> bool:
        return self.allows_repository(scope) and not is_excluded(
            self.policy, repository=scope.repository, path=path
        )
