"""A TCP proxy on loopback that stops an HTTP exchange at a chosen instant: before it reaches the server, or after.

    gate = proxy.stop("POST", "/text")                    # before the request is forwarded
    gate = proxy.stop("POST", "/text", after=True)        # the server has answered; the caller has not heard it
    gate.wait()                                           # the exchange stands there now
    gate.go()    gate.cut()    gate.reply(429, ("retry-after", "1"))

WebSockets pass through. Requests are matched by method and a part of the path, each gate once, oldest first.
"""

import contextlib
import re
import socket
import threading
from dataclasses import dataclass, field
from urllib.parse import urlsplit

WAIT_S = 20.0


@dataclass(eq=False)
class Gate:
    method: str
    part: str
    after: bool
    reached: threading.Event = field(default_factory=threading.Event)
    decided: threading.Event = field(default_factory=threading.Event)
    what: object = "go"

    def wait(self):
        assert self.reached.wait(WAIT_S), f"no {self.method} {self.part} came by"

    def go(self):
        self._decide("go")

    def cut(self):
        self._decide("cut")

    def reply(self, status, *headers):
        lines = [f"HTTP/1.1 {status} told", "content-length: 0", *(f"{a}: {b}" for a, b in headers)]
        self._decide(("\r\n".join(lines) + "\r\n\r\n").encode())

    def _decide(self, what):
        self.what = what
        self.decided.set()

    def take(self):
        self.reached.set()
        self.decided.wait(WAIT_S)
        return self.what


class Proxy:
    def __init__(self, target):
        self.target = urlsplit(target)
        self.requests = []
        self._gates = []
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self, method, part, *, after=False):
        """Stop the next exchange like this."""
        gate = Gate(method, part, after)
        with self._lock:
            self._gates.append(gate)
        return gate

    def seen(self, method, part):
        return [one for one in self.requests if one[0] == method and part in one[1]]

    def close(self):
        self._listener.close()
        for gate in self._gates:
            gate.cut()
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        self._open.add(client)
        server = None
        with contextlib.suppress(OSError, EOFError):
            try:
                while True:
                    request, head = _message(client)
                    method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
                    self.requests.append((method, path))
                    before, after = self._gate(method, path, False), self._gate(method, path, True)
                    if before is not None and not self._passes(before, client):
                        return
                    if server is None:
                        server = socket.create_connection((self.target.hostname, self.target.port))
                        self._open.add(server)
                    server.sendall(request)
                    response, head = _message(server)
                    if after is not None and not self._passes(after, client):
                        return
                    client.sendall(response)
                    if head.startswith(b"HTTP/1.1 101"):
                        self._pass_through(client, server)
                        return
            finally:
                for one in (client, server):
                    if one is not None:
                        self._open.discard(one)
                        one.close()

    def _gate(self, method, path, after):
        with self._lock:
            for gate in self._gates:
                if gate.after == after and gate.method == method and gate.part in path:
                    self._gates.remove(gate)
                    return gate
        return None

    @staticmethod
    def _passes(gate, client):
        what = gate.take()
        if isinstance(what, bytes):
            client.sendall(what)
        return what == "go"

    @staticmethod
    def _pass_through(client, server):
        def pump(source, sink):
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    sink.sendall(data)
            for one in (source, sink):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

        back = threading.Thread(target=pump, args=(server, client), daemon=True)
        back.start()
        pump(client, server)
        back.join()


def _message(source):
    """Read one HTTP message; return all of it and its head."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(source)
    head, _, body = data.partition(b"\r\n\r\n")
    told = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    while told and len(body) < int(told[1]):
        more = _some(source)
        data += more
        body += more
    return data, head


def _some(source):
    data = source.recv(65536)
    if not data:
        raise EOFError
    return data
