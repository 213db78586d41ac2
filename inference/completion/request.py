"""The request types, narrowing along the sentence: each stage takes what the one before made."""

from dataclasses import dataclass

from caret.contracts.api_key import Credential
from caret.contracts.policy import Isolation, Mode, Tier, Trigger
from caret.contracts.snapshot import TenantSnapshot
from inference.completion.incoming_request import ChatMessage, ContextFile
from inference.completion.variant import Variant


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A well-formed request within the limits (see `receive`)."""

    mode: Mode
    path: str
    language: str  # lower case; "" when not said
    prefix: str
    suffix: str
    files: tuple[ContextFile, ...]  # most recently edited first
    repository: str
    max_tokens: int
    stop: tuple[str, ...]
    is_raw: bool
    messages: tuple[ChatMessage, ...] = ()  # of a chat, oldest first
    trigger: Trigger = Trigger.AUTOMATIC
    is_warm_up: bool = False

    @property
    def tier(self) -> Tier:
        return Tier.FAST if self.mode in (Mode.INLINE, Mode.FIM) else Tier.QUALITY


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a credential in force and its tenant's snapshot at that moment."""

    credential: Credential
    snapshot: TenantSnapshot

    @property
    def is_content_captured(self) -> bool:
        """Both keys are turned: content of what this principal asks for may be kept."""
        return self.credential.keeps_content and self.snapshot.policy.telemetry is not None

    @property
    def owner(self) -> str:
        """Whose suggestions these are: the user's, of a service its key's."""
        return self.credential.user_id or self.credential.key_id

    @property
    def cache_partition(self) -> str:
        """Within the tenant: "" for all of it, in strict isolation the user or service key."""
        if self.snapshot.policy.isolation is Isolation.STRICT:
            return self.credential.user_id or f"key:{self.credential.key_id}"
        return ""

    @property
    def namespace(self) -> str:
        """Who may hit what this principal has left in a cache: its tenant in this epoch, and in
        strict isolation the user, or service key, alone."""
        return f"{self.snapshot.tenant_id}|{self.cache_partition}|{self.snapshot.cache_epoch}"


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """A request that its tenant's policy allows and that holds a seat."""

    principal: Principal
    request: CompletionRequest  # without what the policy excludes
    pool: str  # the name of the pool that serves it
    variant: Variant
