"""The types of a request. Each stage accepts the type that the previous stage returns."""

from dataclasses import dataclass

from caret.contracts.api_key import Credential
from caret.contracts.policy import Isolation, Mode, Tier, Trigger
from caret.contracts.snapshot import TenantSnapshot
from inference.completion.edit import Diagnostic, RecentEdit
from inference.completion.generation_options import (
    GREEDY,
    NO_TIME_LIMITS,
    Sampling,
    TimeLimits,
)
from inference.completion.incoming_request import ChatMessage, ContextFile, Definition
from inference.completion.variant import Variant


def tier_of(mode: Mode) -> Tier:
    return Tier.FAST if mode in (Mode.INLINE, Mode.FIM) else Tier.QUALITY


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A valid request within the limits (see `receive`)."""

    mode: Mode
    path: str
    language: str  # lower case; "" if unknown
    prefix: str
    suffix: str
    files: tuple[ContextFile, ...]  # most recently edited first
    repository: str
    max_tokens: int
    stop: tuple[str, ...]
    is_raw: bool
    messages: tuple[ChatMessage, ...] = ()  # for chat only, oldest first
    trigger: Trigger = Trigger.AUTOMATIC
    is_warm_up: bool = False
    model: str = ""  # as requested; "": the default
    imports: tuple[str, ...] = ()  # the file's framework, if known, and then its imported modules
    sampling: Sampling = GREEDY
    time_limits: TimeLimits = NO_TIME_LIMITS
    recent_edits: tuple[RecentEdit, ...] = ()  # for edits only, oldest first
    diagnostics: tuple[Diagnostic, ...] = ()  # for edits only
    possible_paths: tuple[str, ...] = ()  # paths that the file may have besides `path`
    definitions: tuple[Definition, ...] = ()  # in the client's order

    @property
    def tier(self) -> Tier:
        return tier_of(self.mode)


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: a valid credential and its tenant's snapshot at that moment."""

    credential: Credential
    snapshot: TenantSnapshot

    @property
    def modes(self) -> frozenset[Mode]:
        """The modes that the key and the policy allow."""
        key_modes = self.credential.modes
        policy_modes = self.snapshot.policy.features
        return policy_modes if key_modes is None else policy_modes & key_modes

    @property
    def is_content_captured(self) -> bool:
        """True if both the credential and the policy consent to storing content."""
        return self.credential.keeps_content and self.snapshot.policy.content_capture is not None

    @property
    def owner(self) -> str:
        """The owner of suggestions: the user, or the key if it is a service key."""
        return self.credential.user_id or self.credential.key_id

    @property
    def cache_partition(self) -> str:
        """The part of the tenant that may share a cache.

        "" stands for the whole tenant; in strict isolation it is the user or service key.
        """
        if self.snapshot.policy.isolation is Isolation.STRICT:
            return self.credential.user_id or f"key:{self.credential.key_id}"
        return ""

    @property
    def namespace(self) -> str:
        """The cache namespace: the principals that may hit each other's cache entries.

        It contains the tenant and its cache epoch, and in strict isolation the user or service key.
        """
        return f"{self.snapshot.tenant_id}|{self.cache_partition}|{self.snapshot.cache_epoch}"


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """A request that the tenant's policy allows and that holds a concurrency slot."""

    principal: Principal
    request: CompletionRequest  # without files, edits and definitions that the policy excludes
    pool: str  # the name of the pool that serves it
    variant: Variant
