"""Log-in codes by mail, through a mail server of the test's own on loopback that speaks the few words of SMTP."""

import asyncio
import contextlib
import email
import email.policy
import re

import httpx
import pytest
from hoop_house import NO_TLS, House, HouseProcess, eventually

from sentinel.server.config import Smtp
from sentinel.server.delivery import Mail


class MailServer:
    """Takes mails in: `mails` holds (sender, receivers, message).

    `refuses`: it says 550 to each receiver. `is_silent`: it says nothing at all, and `called` tells that it was asked to.
    """

    def __init__(self, *, refuses=False, is_silent=False):
        self.mails = []
        self.is_silent = is_silent
        self.called = asyncio.Event()
        self.refuses = refuses
        self.port = 0

    @contextlib.asynccontextmanager
    async def listening(self):
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _talk(self, reader, writer):
        self.called.set()
        if self.is_silent:
            await reader.read()  # until the other side hangs up
            writer.close()
            return
        sender, receivers = None, []

        async def say(line):
            writer.write(f"{line}\r\n".encode())
            await writer.drain()

        await say("220 mail.example ready")
        while line := (await reader.readline()).decode().strip():
            word, _, rest = line.partition(" ")
            match word.upper():
                case "EHLO" | "HELO" | "RSET" | "NOOP":
                    await say("250 mail.example")
                case "MAIL":
                    sender = re.search("<(.*)>", rest)[1]
                    await say("250 ok")
                case "RCPT" if self.refuses:
                    await say("550 no such receiver")
                case "RCPT":
                    receivers.append(re.search("<(.*)>", rest)[1])
                    await say("250 ok")
                case "DATA":
                    await say("354 go on")
                    body = (await reader.readuntil(b"\r\n.\r\n")).removesuffix(b".\r\n")
                    message = email.message_from_bytes(body, policy=email.policy.default)
                    self.mails.append((sender, receivers, message))
                    await say("250 taken")
                case "QUIT":
                    await say("221 bye")
                    break
                case _:
                    await say("502 not here")
        writer.close()


@pytest.fixture
async def mail_server():
    async with MailServer().listening() as server:
        yield server


async def stopped(running):
    """Stop a server process while the mail server of this loop goes on answering it."""
    return await asyncio.to_thread(running.stop)


def smtp(server, domain=""):
    return Smtp("127.0.0.1", server.port, "hoop@server.example", domain)


async def test_a_name_that_is_an_address_is_mailed_its_code(mail_server, capsys):
    await Mail(smtp(mail_server)).deliver("ann@team.example", "012345")

    ((sender, receivers, message),) = mail_server.mails
    assert (sender, receivers) == ("hoop@server.example", ["ann@team.example"])
    assert (message["From"], message["To"]) == ("hoop@server.example", "ann@team.example")
    assert message["Subject"] == "Your log-in code"
    assert "Your log-in code is 012345." in message.get_content()
    assert "012345" not in capsys.readouterr().err


async def test_a_domain_makes_addresses_of_names(mail_server):
    await Mail(smtp(mail_server, "team.example")).deliver("bob", "1")

    assert [receivers for _, receivers, _ in mail_server.mails] == [["bob@team.example"]]


@pytest.mark.parametrize("name", ["bob", "bob builder@team.example", "bob\n@team.example"])
async def test_a_name_without_an_address_gets_its_code_on_the_console(mail_server, capsys, name):
    await Mail(smtp(mail_server)).deliver(name, "012345")

    assert mail_server.mails == []
    assert "012345" in capsys.readouterr().err


async def test_a_person_logs_in_with_the_mailed_code(data, mail_server):
    options = ("--smtp-host", "127.0.0.1", "--smtp-port", str(mail_server.port))
    running = HouseProcess(data, *options, "--smtp-from", "hoop@server.example", "--smtp-domain", "t.example")
    ann = House(running.url, data).person("ann")
    async with httpx.AsyncClient(base_url=running.url, verify=NO_TLS) as web:
        await web.post("/v1/auth/otp/request", json={"account": ann.name})
        await eventually(lambda: mail_server.mails)
        code = re.search(r"\d{6}", mail_server.mails[0][2].get_content())[0]
        reply = await web.post("/v1/auth/otp/verify", json={"account": ann.name, "code": code})

    assert await stopped(running) == 0
    assert reply.json()["user"] == ann.account
    assert code not in running.errors.read_text()


async def test_a_mail_that_is_refused_is_logged_and_the_next_one_goes_out(data):
    async with MailServer(refuses=True).listening() as mail_server:
        options = ("--smtp-host", "127.0.0.1", "--smtp-port", str(mail_server.port))
        running = HouseProcess(data, *options, "--smtp-from", "h@s.example", "--smtp-domain", "t.example")
        ann = House(running.url, data).person("ann")
        async with httpx.AsyncClient(base_url=running.url, verify=NO_TLS) as web:
            first = await web.post("/v1/auth/otp/request", json={"account": ann.name})
            await eventually(lambda: "could not be" in running.errors.read_text())
            mail_server.refuses = False
            await web.post("/v1/auth/otp/request", json={"account": ann.name})
            await eventually(lambda: mail_server.mails)

        assert await stopped(running) == 0
    assert first.status_code == 204


async def test_a_mail_server_that_says_nothing_does_not_keep_ours_from_stopping(data):
    async with MailServer(is_silent=True).listening() as mail_server:
        options = ("--smtp-host", "127.0.0.1", "--smtp-port", str(mail_server.port))
        running = HouseProcess(data, *options, "--smtp-from", "h@s.example", "--smtp-domain", "t.example")
        ann = House(running.url, data).person("ann")
        async with httpx.AsyncClient(base_url=running.url, verify=NO_TLS) as web:
            await web.post("/v1/auth/otp/request", json={"account": ann.name})
            await asyncio.wait_for(mail_server.called.wait(), 20)

            health = await web.get("/v1/health")

        assert health.status_code == 200
        assert await stopped(running) == 0
