"""A minimal DNS server on a UDP port of this machine."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

_TTL_S = 1


class DnsServer(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}  # by name; IPv4 and IPv6 in one list
        self.texts: dict[str, str] = {}  # TXT record by name
        self.port = 0
        self.is_broken = False  # True: it answers each query with SERVFAIL
        self.num_queries = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.num_queries += 1
        query = dns.message.from_wire(data)
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        (question,) = query.question
        name = question.name.to_text(omit_final_dot=True)
        if self.is_broken:
            response.set_rcode(dns.rcode.SERVFAIL)
        elif name not in self.addresses and name not in self.texts:
            response.set_rcode(dns.rcode.NXDOMAIN)
        # If the name has no record of the type, the answer is empty.
        elif records := self._find_records(name, question.rdtype):
            response.answer.append(
                dns.rrset.from_text_list(question.name, _TTL_S, "IN", question.rdtype, records)
            )
        self._transport.sendto(response.to_wire(), addr)

    def _find_records(self, name: str, rdtype: dns.rdatatype.RdataType) -> list[str]:
        """Return the name's records of this type, in the text format of zone files."""
        if rdtype == dns.rdatatype.TXT:
            return [f'"{self.texts[name]}"'] if name in self.texts else []
        if rdtype not in (dns.rdatatype.A, dns.rdatatype.AAAA):
            return []
        return [
            address
            for address in self.addresses.get(name, [])
            # Only IPv6 addresses contain a colon.
            if (":" in address) == (rdtype == dns.rdatatype.AAAA)
        ]


@asynccontextmanager
async def dns_server() -> AsyncIterator[DnsServer]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(DnsServer, local_addr=("127.0.0.1", 0))
    try:
        yield server
    finally:
        transport.close()


@contextmanager
def dns_server_in_thread() -> Iterator[DnsServer]:
    """Run the server in its own thread, for tests that block their event loop."""
    servers: list[DnsServer] = []
    started, loop = threading.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        async with dns_server() as server:
            servers.append(server)
            started.set()
            await stop_event.wait()

    stop_event = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield servers[0]
    finally:
        loop.call_soon_threadsafe(stop_event.set)
        thread.join(10)
        loop.close()
