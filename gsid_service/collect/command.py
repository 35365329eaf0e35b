"""Runs what an operator's settings say, within a time."""

import os
import signal
import subprocess

from gsid_service.collect.source import SourceError


def run(command: list[str], seconds: float) -> str:
    """What a command prints; one that hangs is ended with all that it started."""
    try:
        process = subprocess.Popen(  # noqa: S603 (the operator's own settings)
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise SourceError(f"{command[0]}: {error.strerror}") from None
    try:
        output, complaint = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise SourceError(f"{command[0]} did not end within {seconds:g} s") from None
    if process.returncode != 0:
        last = (complaint.strip() or output.strip()).splitlines()[-1:]
        raise SourceError(f"{command[0]} failed: {''.join(last) or process.returncode}")
    return output
