"""Where the log goes: one JSON line per decision into `log/`, rotated; readable lines on standard error.

Source: spec 06 "Logs".
"""

import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import cast

import structlog

from sentinel.daemon.log import Log

_FILE_BYTES = 10 * 1024 * 1024
_FILES_KEPT = 5


def open_log(home: Path, *, name: str) -> Log:
    """Open the log of a persona; `log/` is made with mode 0700."""
    folder = home / "log"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = RotatingFileHandler(
        folder / "sentinel.jsonl", maxBytes=_FILE_BYTES, backupCount=_FILES_KEPT, encoding="utf-8"
    )
    file.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ]
        )
    )
    people = logging.StreamHandler(sys.stderr)
    people.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
            ]
        )
    )
    logger = logging.getLogger(f"hoop-sentinel.{name}")
    logger.handlers = [file, people]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    wrapped = structlog.wrap_logger(
        logger,
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return cast("Log", wrapped.bind(persona=name))
