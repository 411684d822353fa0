"""`sentinel why`. Source: spec 09; spec 07 ("Why did my persona not wake?")."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from sentinel.cli.output import print_json, print_line
from sentinel.core.errors import Exit, SentinelError
from sentinel.core.triage import Reason, explain
from sentinel.home.locate import find
from sentinel.store.store import look_at_store

app = typer.Typer(add_completion=False)


class Unknown(SentinelError):
    """Nothing was kept about this message."""

    exit_code = Exit.UNAVAILABLE


@app.command(epilog="Example: sentinel why gode m-93ab")
def why(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The persona.")],
    message_id: Annotated[
        str, typer.Argument(metavar="MESSAGE-ID", help="The message, as the room shows it.")
    ],
    *,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print {message, cid, seq, decision, reason, at, state, what, mend}."),
    ] = False,
) -> None:
    """Say what was decided on a message, in one reason word, and what can be done about it."""
    store = look_at_store(find(name))
    kept = store.inbox.why(message_id)
    if kept is None:
        raise Unknown(
            f"nothing is known of {message_id}",
            mend="it was not pulled, or it neither called nor named this persona; see runbooks/woke-not.md",
        )
    triggers = store.turns.triggers([message_id])
    state = triggers[0].state.value if triggers else None
    what, mend = (
        explain(Reason(kept.reason)) if kept.decision in {"skip", "hold"} else (_DONE[kept.decision], "")
    )
    at = datetime.fromtimestamp(kept.at, UTC).isoformat(timespec="milliseconds")
    if as_json:
        print_json(
            {
                "message": kept.message_id,
                "cid": kept.cid,
                "seq": kept.seq,
                "decision": kept.decision,
                "reason": kept.reason,
                "at": at,
                "state": state,
                "what": what,
                "mend": mend,
            }
        )
        return
    print_line(
        f"{kept.reason}: {what}" + (f" (now: {state})" if state else "") + (f": {mend}" if mend else "")
    )


_DONE = {
    "wake": "it is a trigger: it woke the persona",
    "obey": "it was a command, and the program obeyed it",
}
