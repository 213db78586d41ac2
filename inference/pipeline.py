"""The pipeline of a completion, stage by stage.

    receive > authenticate > admit > assemble > route > generate > filter > stream > record

Each stage is a module. Stages that hold a resource are context managers. So the concurrency slot
and the engine request of a completion are always released, and the completion is always recorded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from caret.foundation.clock import Clock
from caret.foundation.log_config import describe
from inference.completion.incoming_request import IncomingRequest
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import ResponseWriter
from inference.content_capture import ContentCapture
from inference.context.assemble import assemble
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.sources.snippet_source import SnippetSource
from inference.filtering.filter import filter, make_line_continuation
from inference.filtering.public_code_index import ActivePublicCodeIndex
from inference.gateway.admit import AdmissionController, admit
from inference.gateway.authenticate import authenticate
from inference.gateway.protocol.late_outcomes import LateOutcomeRecorder
from inference.gateway.protocol.recent_suggestions import RecentSuggestions
from inference.gateway.rate_limits.body_quota import BodyQuota
from inference.gateway.receive import receive
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from inference.gateway.stream import stream
from inference.pools.engine import Engine
from inference.pools.generate import generate
from inference.prefix_cache.warmup import WarmupQueue, cut_to_stable_part
from inference.recording.record import Recorder, record
from inference.routing.pool_selection import PoolSelector
from inference.routing.route import Router, route


@dataclass(frozen=True, slots=True)
class DataPlane:
    """The long-lived parts of the data plane, composed once by `caret.composition`."""

    clock: Clock
    snapshots: SnapshotStore
    admission: AdmissionController
    prompt_writers: Mapping[str, PromptWriter]  # by the pool's name
    snippets: SnippetSource
    pool_selector: PoolSelector
    router: Router
    engine: Engine
    recorder: Recorder
    suggestions: RecentSuggestions
    late_outcomes: LateOutcomeRecorder
    warmup_queue: WarmupQueue
    body_quota: BodyQuota
    public_code: ActivePublicCodeIndex = field(default_factory=ActivePublicCodeIndex)
    content_capture: ContentCapture | None = None  # None: content capture is disabled


log = structlog.get_logger(__name__)


async def serve(plane: DataPlane, arrival: IncomingRequest, client: ResponseWriter) -> None:
    """Serve one completion. Defects are logged without their messages, which may contain code.

    Raises CancelledError.
    """
    try:
        await complete(plane, arrival, client)
    except Exception as defect:  # noqa: BLE001  # the edge: the client already has an error
        log.error("completion.internal_error", request_id=arrival.request_id, **describe(defect))


async def complete(plane: DataPlane, arrival: IncomingRequest, client: ResponseWriter) -> None:
    """Serve one completion. Every error is reported to the client and recorded.

    Only CancelledError and defects are raised. If the task is cancelled with a FinishReason or a
    CompletionError as its message, the client gets that reason. Without a message, the client
    counts as disconnected.
    """
    with record(plane.recorder, arrival) as trace:
        async with stream(client, trace) as send:
            request = receive(arrival)
            trace.mark_received(request)
            principal = _authenticate(plane, arrival)
            trace.mark_authenticated(principal)
            async with admit(plane.admission, principal, request, trace) as admitted:
                trace.mark_admitted(admitted)
                plane.warmup_queue.on_request_admitted(admitted, arrival)
                writer, snippets = (
                    plane.prompt_writers[admitted.pool],
                    plane.snippets.find(admitted),
                )
                prompt = assemble(writer, admitted, snippets)
                trace.mark_assembled(prompt)
                engine_request = route(plane.router, admitted, prompt)
                trace.mark_routed(engine_request)
                async with (
                    generate(
                        plane.engine,
                        engine_request,
                        plane.router.replicas,
                        trace,
                        writer.tokenizer,
                        make_line_continuation(admitted.request, prompt),
                    ) as chunks,
                    filter(
                        chunks, admitted, prompt, trace, public_code=plane.public_code.current
                    ) as texts,
                ):
                    async for text in texts:
                        await send(text)


async def warm_up(plane: DataPlane, arrival: IncomingRequest) -> None:
    """Prefill the stable part of a file's prompts.

    Nothing is sent to a client, and no usage record is written.

    Raises CompletionError, CompletionDropped.
    """
    trace = RequestTrace(arrival=arrival, clock=plane.clock)
    request = receive(arrival)
    principal = _authenticate(plane, arrival)
    async with admit(plane.admission, principal, request, trace) as admitted:
        writer, snippets = plane.prompt_writers[admitted.pool], plane.snippets.find(admitted)
        prompt = cut_to_stable_part(assemble(writer, admitted, snippets))
        engine_request = route(plane.router, admitted, prompt)
        async with generate(
            plane.engine, engine_request, plane.router.replicas, trace, writer.tokenizer
        ) as chunks:
            async for _ in chunks:
                pass


def _authenticate(plane: DataPlane, arrival: IncomingRequest) -> Principal:
    return authenticate(
        plane.snapshots,
        arrival.key_text,
        now_ms=plane.clock.now_ms(),
        address=arrival.address,
    )
