"""`sentinel`: finds the verb, imports that verb's module and nothing else, and turns faults into exit codes.

Each verb group is a module of this package with a `typer.Typer` called `app`. The table below holds their one-line
helps too, so that `sentinel --help` imports none of them. Source: spec 09; spec 08 (start-up).
"""

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from sentinel import __version__
from sentinel.cli.output import print_line, tell
from sentinel.core.errors import Exit, SentinelError

VERBS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "A room in your browser with a persona that answers."),
    "hoop": ("hoop", "The embedded HOOP server: serve, accounts, rooms, codes, back-up."),
    "persona": ("persona", "Persona homes: new, adopt, set, show, list, remove, export, import, launcher."),
    "check": ("check", "Run the gate's seven checks on a persona."),
    "run": ("run", "Run a persona's sentinel in the foreground."),
    "say": ("say", "Post as a persona, mentions resolved, read back."),
    "wake": ("wake", "Send a test mention as a human; report each leg of the answer."),
    "why": ("why", "Say why a message did, or did not, wake a persona."),
    "status": ("status", "What each persona is doing now."),
    "usage": ("usage", "Tokens and turns of each persona."),
    "logs": ("logs", "A persona's decisions, one line each."),
    "service": ("service", "A persona as a service: install, uninstall, restart, status."),
    "retry": ("control", "Try parked messages again."),
    "pause": ("control", "Take no new turns."),
    "resume": ("control", "Take turns again."),
    "stop": ("control", "Stop the running turn."),
    "bridge": ("bridge", "The one-shot forms of fetch and reply, for scripts."),
    "mentions": ("mentions", "Resolve @names of a text against a list of members."),
}

_TYPER_INTERRUPTED = 130


class _Verbs(typer.core.TyperGroup):
    """A group whose members are imported when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        del ctx
        if cmd_name not in VERBS:
            return None
        module, _ = VERBS[cmd_name]
        command: Any = typer.main.get_command(import_module(f"sentinel.cli.{module}").app)
        if module != cmd_name:  # several verbs share one module: retry, pause, resume, stop
            command = command.commands[cmd_name]
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


_root = typer.Typer(
    cls=_Verbs,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Example: sentinel demo",
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001  # the shape that typer calls
    if wanted:
        print_line(f"sentinel {__version__}")
        raise typer.Exit


@_root.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Personas that live in chat rooms and can be trusted there."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code (spec 09); every fault becomes one line on standard error."""
    try:
        code: Any = typer.main.get_command(_root).main(
            args=list(arguments), prog_name="sentinel", standalone_mode=False
        )
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        return _fail("sentinel: stopped", Exit.USAGE)
    except SentinelError as fault:
        return _fail(f"sentinel: {fault}", fault.exit_code)
    except SystemExit:  # typer's word for a reader that went away (`| head`): it has what it wanted
        return Exit.DONE
    except typer.TyperException as wrong:
        return _fail(_usage_error(wrong), Exit.USAGE)
    if code == _TYPER_INTERRUPTED:
        raise KeyboardInterrupt
    return int(code) if isinstance(code, int) else Exit.DONE


def main() -> None:
    """Run the command line of this process."""
    if sys.stderr is None:  # so Python finds a closed one
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # for this process's life
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # Die of the signal itself, so that a calling shell sees an interrupt and stops its script too.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        return
    except Exception as bug:  # the outermost edge: one line, evidence on request, the code for "our fault"
        if os.environ.get("HOOP_DEBUG"):
            raise
        kind = type(bug).__name__
        code = _fail(f"sentinel: a bug of ours: {kind}: {bug}: set HOOP_DEBUG=1 to see where", Exit.BUG)
    sys.exit(code)


def _usage_error(wrong: Any) -> str:
    what = wrong.format_message() if hasattr(wrong, "format_message") else str(wrong)
    if what.startswith("Usage:"):  # a group without a verb: its help says it all
        return what
    usage = f"{wrong.ctx.get_usage()}\n" if getattr(wrong, "ctx", None) else ""
    return f"{usage}sentinel: {what}"


def _fail(line: str, code: Exit) -> int:
    tell(line)
    return int(code)


if __name__ == "__main__":
    main()
