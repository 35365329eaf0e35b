"""The detectors: GSID and its rivals, each from a `Graph` to `Scores`."""
