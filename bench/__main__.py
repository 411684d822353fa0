"""`make bench`: run the benchmarks, print a table, write `bench/results.json`."""

import argparse
import json
import platform
import sys
import tempfile
import time
from pathlib import Path

from bench import measures
from bench.stage import stage

GOALS = {
    "wake_over_floor": 5.0,
    "p99_over_median": 3.0,
    "pss_over_imports": 2.0,
    "help_over_typer": 2.0,
    "check_over_typer": 2.0,
    "connected_over_imports": 1.5,
    "cpu_s_per_hour": 1.0,
}


def main() -> None:
    """Run everything on one stage."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=300, help="wakes to measure")
    parser.add_argument("--messages", type=int, default=1000, help="unrelated messages to post")
    parser.add_argument("--only", choices=("wake", "idle", "busy", "start-up"), action="append")
    chosen = parser.parse_args()
    wanted = chosen.only or ["wake", "busy", "idle", "start-up"]
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="hoop-bench-") as name, stage(Path(name)) as made:
        made.start_sentinel()
        if "wake" in wanted:
            results["wake"] = measures.wake(made, chosen.rounds)
        if "busy" in wanted:
            results["busy"] = measures.busy(made, chosen.messages)
        if "idle" in wanted:
            made.stop_sentinel()
            made.start_sentinel()
            results["idle"] = measures.idle(made)
        if "start-up" in wanted:
            results["start-up"] = measures.start_up(made)
    show(results)
    kept = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        **results,
    }
    (Path(__file__).parent / "results.json").write_text(json.dumps(kept, indent=2) + "\n")


def show(results: dict[str, dict[str, float]]) -> None:
    """Print every figure, and beside a ratio its goal."""
    for group, figures in results.items():
        print(group)
        for name, value in figures.items():
            goal = f"   goal <= {GOALS[name]:g}" if name in GOALS else ""
            print(f"  {name:24} {value:12.4f}{goal}")
    missed = [
        name
        for figures in results.values()
        for name, value in figures.items()
        if value > GOALS.get(name, value)
    ]
    print("all goals met" if not missed else f"goals missed: {', '.join(missed)}", file=sys.stderr)


if __name__ == "__main__":
    main()
