"""Runs a soak against a real server: networks and minutes in, rows and a table out."""

import argparse
import json
import signal
import sys
from pathlib import Path

from tests.fault.soak.run import Soak
from tests.fault.soak.table import table


def main() -> None:
    wanted = argparse.ArgumentParser(prog="python -m tests.fault.soak")
    wanted.add_argument("--minutes", type=float, default=60)
    wanted.add_argument("--networks", type=int, default=20)
    wanted.add_argument("--seed", type=int, default=1)
    wanted.add_argument("--slice", type=float, default=300, help="seconds of a line of the table")
    wanted.add_argument("--out", type=Path, default=Path("build/soak"))
    wanted.add_argument("--pace", type=float, default=1, help="changes and mistakes, times so many")
    given = wanted.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the server ends with it
    soak = Soak(given.networks, given.seed, given.slice, given.out, given.pace)
    summary = soak.run(given.minutes * 60)
    (given.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    sys.stdout.write(table(given.out / "rows.jsonl", summary))


if __name__ == "__main__":
    main()
