"""``python -m tests.simulation --seeds 1000000``: run many simulations, print every seed that fails.

``--seed N`` replays one, with the scheduler's log. The exit code is 1 when one failed.
"""

from __future__ import annotations

import argparse
import logging
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from .simulate import run_names, run_seeds, simulate

CHUNK = 1000


def main() -> int:
    """Run the seeds that the command line names; 1 when one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many, from --first on (default: 10,000)")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="replay this one alone")
    parser.add_argument("--names", action="store_true", help="schedules of tenants that choose their names")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.seed is not None:
        logging.basicConfig(level=logging.INFO)
        simulate(arguments.seed)
        return 0
    started = time.monotonic()
    end = arguments.first + arguments.seeds
    chunks = [range(start, min(end, start + CHUNK)) for start in range(arguments.first, end, CHUNK)]
    failed = 0
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as pool:
        for chunk, failures in zip(chunks, pool.map(run_names if arguments.names else run_seeds, chunks), strict=True):
            failed += len(failures)
            for failure in failures:
                print(failure)
            print(
                f"{chunk.stop - arguments.first} done, {failed} failed, {time.monotonic() - started:.0f} s", flush=True
            )
    return min(failed, 1)


if __name__ == "__main__":
    raise SystemExit(main())
