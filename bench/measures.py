"""The measurements. Each returns plain numbers; the ratios are made from numbers of the same run."""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.floor import PAUSE_S, floor_s
from bench.stage import SENTINEL, Stage, until

IMPORTS = (
    "asyncio,sqlite3,httpx,httpcore,websockets.asyncio.client,pydantic,structlog,filelock,platformdirs,tenacity,"
    "logging.handlers,typer"
)


def wake(stage: Stage, rounds: int) -> dict[str, float]:
    """Mention -> the executor's first instruction, idle persona, beside the floor of this machine.

    `acknowledged` counts from the server's acknowledgement (a message is durable before that); `sent` from before the
    post, an upper bound that holds the server's own work too.
    """
    floor = floor_s(stage.folder, stage.folder / "stamp")
    acknowledged, sent, whole = [], [], []
    for number in range(rounds + 5):
        seen, done = stage.stamped_bytes(), stage.answered()
        begin = time.time()
        stage.post(f"@Gode round {number}", mention=True)
        stored = time.time()
        until(lambda seen=seen: stage.stamped_bytes() > seen, "the executor starts")
        first = stage.read_stamps()[-1]
        until(lambda done=done: stage.answered() > done, "the answer is read back")
        if number >= 5:
            acknowledged.append(first - stored)
            sent.append(first - begin)
            whole.append(time.time() - begin)
        time.sleep(PAUSE_S)  # an idle persona: its presence has settled
    floor_again = floor_s(stage.folder, stage.folder / "stamp")
    floor_sum = (floor["sum_s"] + floor_again["sum_s"]) / 2
    ordered = sorted(acknowledged)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    median = statistics.median(acknowledged)
    return {
        **{f"floor_{key}": value for key, value in floor.items()},
        "wake_median_s": median,
        "wake_p99_s": p99,
        "wake_sent_median_s": statistics.median(sent),
        "turn_median_s": statistics.median(whole),
        "wake_over_floor": median / floor_sum,
        "wake_sent_over_floor": statistics.median(sent) / floor_sum,
        "p99_over_median": p99 / median,
        "rounds": rounds,
    }


def idle(stage: Stage) -> dict[str, float]:
    """Memory of an idle sentinel beside a bare interpreter that holds the imports a run needs."""
    time.sleep(2.0)  # what start-up left to do is over: idle is what is measured
    mine = pss_kib(stage.sentinel.pid)
    program = f"import {IMPORTS}\nimport sys; print('ready', flush=True); sys.stdin.read()"
    bare = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    bare.stdout.readline()
    imports = pss_kib(bare.pid)
    bare.communicate()
    before = cpu_s(stage.sentinel.pid)
    begin = time.monotonic()
    time.sleep(20.0)  # the time over which idle CPU is counted, not a wait for something
    spent = (cpu_s(stage.sentinel.pid) - before) / (time.monotonic() - begin) * 3600
    return {
        "pss_kib": mine,
        "imports_pss_kib": imports,
        "pss_over_imports": mine / imports,
        "cpu_s_per_hour": spent,
    }


def busy(stage: Stage, messages: int) -> dict[str, float]:
    """CPU of the sentinel per 1,000 messages that are not for it."""
    before = cpu_s(stage.sentinel.pid)
    for number in range(messages):
        stage.post(f"somebody else's message {number}", mention=False)
    time.sleep(1.0)  # the last pull comes half a second after the last ring: its CPU counts too
    spent = cpu_s(stage.sentinel.pid) - before
    return {"messages": messages, "cpu_s_per_1000": spent / messages * 1000}


def start_up(stage: Stage) -> dict[str, float]:
    """Whole commands in multiples of a bare interpreter, and to "connected" in multiples of the imports of a run."""
    stage.stop_sentinel()
    bare = median_wall([sys.executable, "-c", "pass"], stage.env)
    typer = median_wall([sys.executable, "-c", "import typer"], stage.env)
    imports = median_wall([sys.executable, "-c", f"import {IMPORTS}"], stage.env)
    help_s = median_wall([*SENTINEL, "--help"], stage.env)
    check_s = median_wall([*SENTINEL, "check", "gode"], stage.env)
    connected = []
    for _ in range(7):
        begin = time.perf_counter()
        stage.start_sentinel()
        connected.append(time.perf_counter() - begin)
        stage.stop_sentinel()
    connected_s = statistics.median(connected)
    return {
        "python_pass_s": bare,
        "import_typer_s": typer,
        "run_imports_s": imports,
        "help_over_pass": help_s / bare,
        "check_over_pass": check_s / bare,
        "connected_over_pass": connected_s / bare,
        "help_over_typer": help_s / typer,
        "check_over_typer": check_s / typer,
        "connected_over_imports": connected_s / imports,
    }


def median_wall(argv: list[str], env: dict, rounds: int = 9) -> float:
    """Return the median wall time of a whole process."""
    found = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        subprocess.run(argv, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found.append(time.perf_counter() - begin)
    return statistics.median(found[1:])


def pss_kib(pid: int) -> float:
    """Return the proportional set size of a process."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return float(line.split()[1])
    raise ValueError(f"no Pss for {pid}")


def cpu_s(pid: int) -> float:
    """Return user and system time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
