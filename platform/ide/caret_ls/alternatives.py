"""Alternatives to a suggestion: requested when the user invokes a suggestion where one is shown.

Editors let the user look through them. An editor does not tell which one is visible. So only an
alternative that is accepted is reported, as shown and as accepted.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from caret_ls import frames
from caret_ls.completion_client import GatewayApi
from caret_ls.completion_context import CompletionContext
from caret_ls.completion_provider import InlineItem
from caret_ls.frames import RequestContext
from caret_ls.gateway_connection import RequestEnded
from caret_ls.outcome_tracker import ShownSuggestion
from caret_ls.text_document import TextEdit
from caret_ls.workspace import OpenFile, OpenFiles

MAX_ALTERNATIVES: Final = 2  # besides the suggestion; each is a request
_COMPLETE: Final = ("stop", "length")


@dataclass(frozen=True, slots=True)
class _Alternative:
    id: str
    text: str
    request_id: str


@dataclass(slots=True)
class _Offer:
    """A suggestion of one file, with its alternatives once they were requested."""

    item: InlineItem
    alternatives: list[_Alternative] | None = None
    has_grown: bool = False  # VS Code then invokes the suggestion itself

    def is_at(self, item: InlineItem) -> bool:
        """Return whether the item is this suggestion; a repeated request may have another mode."""
        return replace(item, mode=self.item.mode) == self.item


class Alternatives:
    def __init__(
        self,
        files: OpenFiles,
        gateway: GatewayApi,
        *,
        build_request_context: Callable[[OpenFile], RequestContext],
        new_id: Callable[[], str],
    ) -> None:
        self._files = files
        self._gateway = gateway
        self._build_request_context = build_request_context
        self._new_id = new_id
        self._offers: dict[str, _Offer] = {}  # by file: the newest

    async def find(self, uri: str, item: InlineItem, *, is_invoked: bool) -> list[InlineItem]:
        """Return alternatives to an item; none unless the user invoked it where it was offered."""
        file, offer = self._files.get(uri), self._offers.get(uri)
        is_known = offer is not None and offer.is_at(item) and not offer.has_grown
        if file is None or offer is None or not is_known or not is_invoked:
            if not is_known:
                self._offers[uri] = _Offer(item)
            return []
        if offer.alternatives is None:
            offer.alternatives = await self._request_all(file, offer)
        return [
            replace(item, id=alternative.id, text=alternative.text)
            for alternative in offer.alternatives
        ]

    def on_grown(self, uri: str) -> None:
        """Note that the next request is the editor's own, for a suggestion that has grown."""
        if uri in self._offers:
            self._offers[uri].has_grown = True

    def find_inserted(self, uri: str, edit: TextEdit) -> ShownSuggestion | None:
        """Return the alternative that an edit inserts in full."""
        offer = self._offers.get(uri)
        for alternative in (offer and offer.alternatives) or ():
            if edit.inserted == alternative.text:
                return ShownSuggestion(
                    alternative.id, edit.at, alternative.text, request_id=alternative.request_id
                )
        return None

    def close(self, uri: str) -> None:
        self._offers.pop(uri, None)

    async def _request_all(self, file: OpenFile, offer: _Offer) -> list[_Alternative]:
        position = offer.item.position
        context = replace(file.context_at(position, is_invoked=True), mode=offer.item.mode)
        distinct_texts = {offer.item.text}
        alternatives: list[_Alternative] = []
        # One after the other: a newer request for a file supersedes the older one.
        for number in range(1, MAX_ALTERNATIVES + 1):
            alternative = await self._request(file, context, number)
            if alternative is not None and alternative.text not in distinct_texts:
                distinct_texts.add(alternative.text)
                alternatives.append(alternative)
        return alternatives

    async def _request(
        self, file: OpenFile, context: CompletionContext, number: int
    ) -> _Alternative | None:
        id, text = self._new_id(), ""
        frame = frames.build_complete(
            id, context, self._build_request_context(file), trigger="manual"
        )
        frame["alternative"] = number
        try:
            async with self._gateway.request(frame) as responses:
                async for response in responses:
                    if response["type"] != "done":
                        text += str(response.get("text", ""))
                        continue
                    is_complete = response.get("finish_reason") in _COMPLETE and text.strip()
                    request_id = str((response.get("meta") or {}).get("request_id", ""))
                    return _Alternative(id, text.rstrip(), request_id) if is_complete else None
        except RequestEnded:
            return None
        return None
