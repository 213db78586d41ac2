"""What answers where nothing is."""

from inference.consumers.http import HttpConsumer
from inference.consumers.openai_answers import error_body


class MissingConsumer(HttpConsumer):
    async def answer(self, _body: bytes) -> None:
        await self.refuse(404, "not_found", "There is nothing at this address.")

    async def refuse(self, status: int, code: str, message: str) -> None:
        body = error_body(status, code=code, message=message)
        await self.send_whole(status, b"application/json", body)
