"""`sentinel check`: the gate's seven checks, for people and for scripts. Source: spec 09; spec 02 section 2."""

from typing import Annotated

import typer

from sentinel.cli.output import print_json, print_line, tell
from sentinel.core.errors import Exit
from sentinel.core.gate import Passed, Verdict
from sentinel.home import refusal
from sentinel.home.examine import examine
from sentinel.home.locate import find

app = typer.Typer(add_completion=False)


@app.command(epilog="Example: sentinel check gode --json")
def check(
    name: Annotated[
        str, typer.Argument(metavar="NAME|HOME", help="A persona's name, or the path of its home.")
    ],
    cids: Annotated[
        list[str] | None, typer.Argument(metavar="[CID …]", help="Conversations to guard, as for run.")
    ] = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print [{check, ok, what, mend}], seven entries.")
    ] = False,
) -> None:
    """Run the gate on a persona; 0 when all seven say yes, else 78. No executor runs."""
    home = find(name)
    guarded = all(cid.strip() for cid in cids) if cids else None
    verdict = examine(home, guarded=guarded)
    if isinstance(verdict, Passed):
        refusal.clear(home)
    elif not verdict.is_passing:
        from sentinel.app.clock import SystemClock

        refusal.record(home, verdict.checks, now=SystemClock().now())
    raise typer.Exit(report(verdict, as_json=as_json))


def report(verdict: Verdict, *, as_json: bool) -> Exit:
    """Print a verdict, what failed on standard error in the gate's own words, and return its exit code."""
    if as_json:
        print_json(
            [{"check": one.check, "ok": one.ok, "what": one.what, "mend": one.mend} for one in verdict.checks]
        )
    for one in verdict.checks:
        if not one.ok:
            tell(one.line())
        elif not as_json:
            print_line(f"ok: {one.check}: {one.what}")
    return Exit.DONE if isinstance(verdict, Passed) else Exit.CONFIG
