"""Alternatives to a suggestion.

They are requested when the user invokes a suggestion where one is already shown. The editor lets
the user go through all of them, and does not report which one is visible. So only an alternative
that the user accepts is reported: as shown and as accepted.
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
_COMPLETE_REASONS: Final = ("stop", "length")


@dataclass(frozen=True, slots=True)
class _Alternative:
    id: str  # of its request on the connection
    text: str
    request_id: str  # the gateway's ID of the request; "": not received


@dataclass(slots=True)
class _Offer:
    """The newest suggestion of a file, and its alternatives."""

    item: InlineItem
    alternatives: list[_Alternative] | None = None  # None: not requested yet
    # The suggestion has grown since the editor's last request. VS Code then sends the next request
    # by itself, although it says that the user invoked it.
    has_grown: bool = False

    def is_same(self, item: InlineItem) -> bool:
        """Return whether the item is this suggestion.

        The mode does not matter, because a repeated request may have another one.
        """
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
        self._offers: dict[str, _Offer] = {}  # by the file's URI

    async def get_or_request(
        self, uri: str, item: InlineItem, *, is_invoked: bool
    ) -> list[InlineItem]:
        """Return the alternatives to an item, if the user invoked it where it was already offered.

        The first such call requests them, later ones return them again. Any other call returns an
        empty list, and remembers the item as offered.
        """
        file, offer = self._files.get(uri), self._offers.get(uri)
        is_known = offer is not None and offer.is_same(item) and not offer.has_grown
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
        """Note that the suggestion has grown: the editor, not the user, sends the next request."""
        if uri in self._offers:
            self._offers[uri].has_grown = True

    def find_inserted(self, uri: str, edit: TextEdit) -> ShownSuggestion | None:
        """Return the alternative whose whole text an edit inserts; None if there is none."""
        offer = self._offers.get(uri)
        alternatives = None if offer is None else offer.alternatives
        for alternative in alternatives or ():
            if edit.inserted == alternative.text:
                return ShownSuggestion(
                    alternative.id, edit.at, alternative.text, request_id=alternative.request_id
                )
        return None

    def close(self, uri: str) -> None:
        self._offers.pop(uri, None)

    async def _request_all(self, file: OpenFile, offer: _Offer) -> list[_Alternative]:
        """Request the alternatives; leave out failed ones and repeated texts."""
        position = offer.item.position
        context = replace(file.context_at(position, is_invoked=True), mode=offer.item.mode)
        distinct_texts = {offer.item.text}
        alternatives: list[_Alternative] = []
        # One after the other, because a newer request for a file supersedes the older one.
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
                    is_usable = response.get("finish_reason") in _COMPLETE_REASONS and text.strip()
                    request_id = str((response.get("meta") or {}).get("request_id", ""))
                    return _Alternative(id, text.rstrip(), request_id) if is_usable else None
        except RequestEnded:
            return None
        return None
