"""The dashboards as JSON: `python -m deploy.grafana.write` writes deploy/grafana/dashboards."""

import json
from pathlib import Path

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana.anomalies import anomalies
from deploy.grafana.health import health
from deploy.grafana.model import model

FOLDER = Path(__file__).parent / "dashboards"
DASHBOARDS = {"anomalies": anomalies, "health": health, "model": model}


def as_json(made: Dashboard) -> str:
    return json.dumps(made.build(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def main() -> None:
    for name, make in DASHBOARDS.items():
        (FOLDER / f"{name}.json").write_text(as_json(make()))


if __name__ == "__main__":
    main()
