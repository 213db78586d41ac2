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
    """Return the tier whose pools serve the mode."""
    return Tier.FAST if mode in (Mode.INLINE, Mode.FIM) else Tier.QUALITY


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A valid request within the limits of `inference.gateway.receive`."""

    mode: Mode
    path: str  # of the cursor's file; "": unknown
    language: str  # one of caret.contracts.language_ids.LANGUAGES; "": unknown
    prefix: str  # text before the cursor
    suffix: str  # text after the cursor
    files: tuple[ContextFile, ...]  # most recently edited first
    repository: str  # its name; "": unknown
    max_tokens: int  # to generate
    stop: tuple[str, ...]  # the text ends before the first of these strings
    is_raw: bool  # `prefix` is a whole prompt, including the markers of the model family
    messages: tuple[ChatMessage, ...] = ()  # for chat only, oldest first
    trigger: Trigger = Trigger.AUTOMATIC
    is_warm_up: bool = False  # only prefill the stable part of the prompt
    model: str = ""  # as requested; "": the tenant's default
    imports: tuple[str, ...] = ()  # the file's framework, if known, and then its imported modules
    sampling: Sampling = GREEDY
    time_limits: TimeLimits = NO_TIME_LIMITS
    recent_edits: tuple[RecentEdit, ...] = ()  # for edits only, oldest first
    diagnostics: tuple[Diagnostic, ...] = ()  # for edits only
    # Paths that the file may have besides `path`, according to comments; the most likely first.
    possible_paths: tuple[str, ...] = ()
    definitions: tuple[Definition, ...] = ()  # in the client's order

    @property
    def tier(self) -> Tier:
        return tier_of(self.mode)


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: a valid credential, and its tenant's snapshot at the time of authentication."""

    credential: Credential
    snapshot: TenantSnapshot

    @property
    def modes(self) -> frozenset[Mode]:
        """The modes that the key and the policy allow."""
        key_modes = self.credential.modes
        policy_modes = self.snapshot.policy.features
        # None: the key allows all modes.
        return policy_modes if key_modes is None else policy_modes & key_modes

    @property
    def is_content_captured(self) -> bool:
        """True if the user has consented to content capture, and the policy still allows it."""
        return self.credential.keeps_content and self.snapshot.policy.content_capture is not None

    @property
    def owner(self) -> str:
        """The owner of suggestions: the ID of the user, or of the key if it is a service key."""
        return self.credential.user_id or self.credential.key_id

    @property
    def cache_partition(self) -> str:
        """The part of the tenant that may share a cache.

        "": the whole tenant. In strict isolation, each user and each service key is a part.
        """
        if self.snapshot.policy.isolation is Isolation.STRICT:
            return self.credential.user_id or f"key:{self.credential.key_id}"
        return ""

    @property
    def namespace(self) -> str:
        """The cache namespace. Principals with the same namespace may hit each other's entries.

        It contains the tenant and its cache epoch, and in strict isolation the user or service key.
        """
        return f"{self.snapshot.tenant_id}|{self.cache_partition}|{self.snapshot.cache_epoch}"


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """A request that the tenant's policy allows and that holds a concurrency slot."""

    principal: Principal
    request: CompletionRequest  # without files, edits and definitions that the policy excludes
    pool: str  # the name of the pool that serves the request
    variant: Variant  # NO_VARIANT: in no experiment
