"""Run worlds: one seed with its trace, many seeds with their sum, or the guards with the seeds that find them missing.

python -m tests.simulation 123
python -m tests.simulation --seeds 10000 --jobs 2
python -m tests.simulation --mutations --seeds 500
"""

import argparse
import gc
import itertools
import multiprocessing
import os
import sys
import time
from collections import Counter

from tests.simulation.mutations import MUTATIONS
from tests.simulation.plan import kinds
from tests.simulation.world import simulate

_SHOWN = 10
_ALL_KINDS_FROM = 2_000
"""From so many seeds on, a kind that was never drawn is a failure."""


def main():
    asked = _arguments()
    gc.set_threshold(200_000, 5, 5)  # a world leaves much at once, and nothing that must go soon
    if asked.mutations:
        return _find_mutations(asked.seeds)
    if asked.seed is not None:
        return _replay(asked.seed)
    return _run_many(range(asked.first, asked.first + asked.seeds), asked.jobs)


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("seed", nargs="?", type=int, help="replay this one and print its trace")
    parser.add_argument("--seeds", type=int, default=1000, help="how many to run (1000)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (0)")
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (one a core)"
    )
    parser.add_argument("--mutations", action="store_true", help="find for each guard a seed that misses it")
    return parser.parse_args()


def _replay(seed):
    outcome = simulate(seed)
    sys.stdout.write(outcome.trace.text())
    for one in outcome.broken:
        print(f"BROKEN {one}")
    print(f"seed {seed}: {len(outcome.broken)} promises broken, {outcome.steps} steps")
    return 1 if outcome.broken else 0


def _one(seed):
    outcome = simulate(seed)
    return seed, outcome.broken, outcome.drawn, outcome.steps


def _run_many(seeds, jobs):
    began = time.monotonic()
    drawn, broken, steps = Counter(), [], 0
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for seed, promises, counted, taken in pool.imap_unordered(_one, seeds, chunksize=20):
            drawn.update(counted)
            steps += taken
            if promises:
                broken.append((seed, promises))
    for seed, promises in sorted(broken)[:_SHOWN]:
        print(f"seed {seed}: {promises[0]}\n    replay it: make simulate SEED={seed}")
    never = [one for one in kinds() if not drawn[one]] if len(seeds) >= _ALL_KINDS_FROM else []
    for kind in never:
        print(f"never drawn: {kind}")
    for kind, times in sorted(drawn.items()):
        print(f"{times:9}  {kind}")
    took_s = time.monotonic() - began
    dead = sum(1 for one in drawn if one.startswith("dies: "))
    print(
        f"simulation: {len(seeds)} seeds, {len(broken)} broken; {len(seeds) / took_s:.0f} seeds/s, {steps} steps; "
        f"{len(kinds()) - len(never)}/{len(kinds())} kinds drawn, deaths at {dead} kinds of steps"
    )
    return 1 if broken or never else 0


def _find_mutations(most):
    missed = 0
    for guard, mutation in MUTATIONS.items():
        with mutation.applied():
            found = next(
                (one for one in itertools.islice(itertools.count(), most) if _breaks(one, mutation)), None
            )
        missed += found is None
        print(f"{guard}: {'NOT FOUND' if found is None else f'seed {found}'}", flush=True)
    return 1 if missed else 0


def _breaks(seed, mutation):
    return any(one.startswith(mutation.promises) for one in simulate(seed).broken)


if __name__ == "__main__":
    sys.exit(main())
