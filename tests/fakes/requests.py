"""Requests at each stage of the pipeline, with plain defaults."""

from typing import Any

from caret.contracts.policy import Mode
from caret.foundation.ids import RequestId, new_request_id
from inference.completion.incoming_request import IncomingRequest, UnvalidatedRequest
from inference.completion.request import AdmittedRequest, CompletionRequest, Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.variant import NO_VARIANT, Variant
from inference.context.prompt.prompt import Prompt
from tests.fakes.clock import FakeClock
from tests.fakes.tenants import make_principal


def make_arrival(
    *,
    key_text: str | None = None,
    address: str | None = None,
    clock: FakeClock | None = None,
    trace_parent: str | None = None,
    request_id: RequestId | None = None,
    **fields: Any,
) -> IncomingRequest:
    """Return a request that has just arrived. `fields` are those of its UnvalidatedRequest."""
    clock = clock or FakeClock()
    return IncomingRequest(
        protocol="stream",
        key_text=key_text,
        address=address,
        draft=UnvalidatedRequest(**{"mode": "inline", "prefix": "a = ", **fields}),
        received_s=clock.monotonic_s(),
        occurred_at_ms=clock.now_ms(),
        trace_parent=trace_parent,
        request_id=request_id or new_request_id(),
    )


def make_request(**fields: Any) -> CompletionRequest:
    defaults: dict[str, Any] = {
        "mode": Mode.INLINE,
        "path": "a.py",
        "language": "python",
        "prefix": "a = ",
        "suffix": "",
        "files": (),
        "repository": "",
        "max_tokens": 64,
        "stop": (),
        "is_raw": False,
    }
    return CompletionRequest(**{**defaults, **fields})


def make_admitted(
    principal: Principal | None = None,
    *,
    pool: str = "demo-fast",
    variant: Variant = NO_VARIANT,
    **fields: Any,
) -> AdmittedRequest:
    return AdmittedRequest(
        principal=principal or make_principal(),
        request=make_request(**fields),
        pool=pool,
        variant=variant,
    )


def make_trace(clock: FakeClock | None = None) -> RequestTrace:
    clock = clock or FakeClock()
    return RequestTrace(arrival=make_arrival(clock=clock), clock=clock)


def make_prompt(*, is_single_line: bool = False) -> Prompt:
    return Prompt(token_ids=[1, 2, 3], stop_token_ids=[0], is_single_line=is_single_line)
