"""`gsid` with a clock that a file sets forward or back, by so many seconds, while it runs."""

import sys
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from gsid_service import app
from gsid_service.__main__ import main


class Shifted(datetime):
    file = Path()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(seconds=int(cls.file.read_text()))


if __name__ == "__main__":
    Shifted.file = Path(sys.argv.pop(1))
    app.datetime = Shifted  # type: ignore[attr-defined]
    main()
