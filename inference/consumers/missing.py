"""What answers where nothing is."""

from inference.consumers.http import HttpConsumer
from inference.consumers.openai_answers import error_body
from inference.errors import BadRequest


class MissingConsumer(HttpConsumer):
    def check(self) -> None:
        raise BadRequest("not_found", "There is nothing at this address.", http_status=404)

    async def refuse(self, status: int, code: str, message: str) -> None:
        body = error_body(status, code=code, message=message)
        await self.send_whole(status, b"application/json", body)
