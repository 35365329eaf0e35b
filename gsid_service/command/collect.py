"""The command that reads routers and tells the service what they see."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from gsid_service.config import BadSettings
from gsid_service.terminal import print_json, refuse, say

CollectFile = Annotated[Path, typer.Option("--config", "-c", help="A TOML file; see the docs.")]


def collect(
    config_file: CollectFile,
    once: Annotated[
        bool, typer.Option("--once", help="Read each router once, print what it sees, and end.")
    ] = False,
) -> None:
    """Read routers, and push what they see to the service."""
    from gsid_service.collect import process
    from gsid_service.collect.settings import load

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        settings = load(config_file)
        # Where a source of the operator's own is looked for, too.
        sys.path.append(str(config_file.absolute().parent))
        if once:
            print_json(process.read_once(settings))
        else:
            routers = len(settings.routers)
            say(f"collecting from {routers} router{'s' * (routers > 1)} for {settings.service.url}")
            process.run(settings)
    except BadSettings as error:
        refuse(str(error))
