"""The verbs that `control.sock` serves. Source: spec 02 section 1, spec 09."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sentinel.bridge.speak import speak
from sentinel.core import notices
from sentinel.core.errors import UsageError
from sentinel.daemon.case import secrets_of
from sentinel.daemon.commands import Commands
from sentinel.daemon.control import Handler
from sentinel.daemon.ground import Ground
from sentinel.daemon.postman import Postman


def verbs(commands: Commands, ground: Ground, postman: Postman) -> Mapping[str, Handler]:
    """Return verb -> what it does, for one running sentinel."""

    async def status(_: Mapping[str, Any]) -> Mapping[str, Any]:
        notice, fields = commands.status()
        return {
            "state": notice.value.removeprefix("status-"),
            **fields,
            "text": notices.text(notice, "en", **fields),
        }

    async def stop(_: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"stopped": commands.stop()}

    async def pause(_: Mapping[str, Any]) -> Mapping[str, Any]:
        commands.pause(on=True)
        return {"paused": True}

    async def resume(_: Mapping[str, Any]) -> Mapping[str, Any]:
        commands.pause(on=False)
        return {"paused": False}

    async def retry(request: Mapping[str, Any]) -> Mapping[str, Any]:
        message_id = request.get("message_id")
        if not isinstance(message_id, str | None):
            raise UsageError("retry needs a message id, or none")
        return {"retried": commands.retry(message_id=message_id)}

    async def say(request: Mapping[str, Any]) -> Mapping[str, Any]:
        cid, text, number = request.get("cid"), request.get("text"), request.get("nonce")
        if not isinstance(cid, str) or not isinstance(text, str) or not isinstance(number, str | None):
            raise UsageError("say needs a cid and a text")
        said = await speak(
            ground.room,
            ground.store.turns,
            text,
            cid=cid,
            number=number,
            persona=ground.persona,
            members=await ground.room.members(cid),
            secrets=secrets_of(ground.persona),
            clock=ground.clock,
            deliver=postman.attempt,
        )
        return asdict(said)

    return {"status": status, "stop": stop, "pause": pause, "resume": resume, "retry": retry, "say": say}
