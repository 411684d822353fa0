"""How a log-in code reaches a person: a port, and its two fulfilments (spec 01 section 3)."""

import asyncio
import smtplib
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from email.message import EmailMessage
from typing import Protocol

from sentinel.server.config import Smtp


class Delivery(Protocol):
    """Takes a code to the person it is for."""

    async def deliver(self, name: str, code: str) -> None:
        """Hand `code` to the owner of the account `name`."""
        ...


class Console:
    """Prints the code where the operator sees it: standard error of `hoop serve`."""

    async def deliver(self, name: str, code: str) -> None:
        """Print one line."""
        sys.stderr.write(f"log-in code for {name}: {code}\n")
        sys.stderr.flush()


class Mail:
    """Mails the code; an account whose name yields no address gets it on the console."""

    def __init__(self, smtp: Smtp) -> None:
        self._smtp = smtp
        self._console = Console()

    async def deliver(self, name: str, code: str) -> None:
        """Mail the code, beside the event loop, within 30 s a step. Raises what `smtplib` raises."""
        address = name if "@" in name else f"{name}@{self._smtp.domain}" if self._smtp.domain else None
        if address is None or any(one.isspace() for one in address):
            await self._console.deliver(name, code)
        else:
            await _beside(lambda: self._mail(address, code))

    def _mail(self, address: str, code: str) -> None:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._smtp.sender, address, "Your log-in code"
        message.set_content(f"Your log-in code is {code}. It is good for five minutes and for one log-in.\n")
        with smtplib.SMTP(self._smtp.host, self._smtp.port, timeout=30) as server:
            server.send_message(message)


async def _beside(work: Callable[[], None]) -> None:
    """Run blocking work in a thread that the end of the program does not wait for, unlike those of `to_thread`.

    A mail server that has gone silent would otherwise keep ours from stopping.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(fault: Exception | None) -> None:
        if done.cancelled():
            return
        if fault is None:
            done.set_result(None)
        else:
            done.set_exception(fault)

    def run() -> None:
        fault: Exception | None = None
        try:
            work()
        except Exception as raised:
            fault = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, fault)

    threading.Thread(target=run, name="hoop-mail", daemon=True).start()
    await done
