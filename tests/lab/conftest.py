"""The lab takes minutes, and root: `make lab` runs it, and a plain `pytest` leaves it alone."""

import os

collect_ignore_glob = [] if os.environ.get("GSID_LAB") else ["test_*.py"]
