"""Where the log goes: one JSON line per decision into `log/`, rotated; readable lines on standard error.

Source: spec 06 "Logs".
"""

import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import cast

import structlog

from sentinel.core.errors import ConfigError
from sentinel.daemon.log import Log

_FILE_BYTES = 10 * 1024 * 1024
_FILES_KEPT = 5


def open_log(home: Path, *, name: str) -> Log:
    """Open the log of a persona; `log/` is made with mode 0700. Raises `ConfigError` where it cannot be written."""
    path = home / "log" / "sentinel.jsonl"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if path.exists() and not path.is_file():  # a FIFO would block for ever
            raise ConfigError(f"{path} is no file", mend="move it away")
        file = RotatingFileHandler(path, maxBytes=_FILE_BYTES, backupCount=_FILES_KEPT, encoding="utf-8")
    except OSError as fault:
        raise ConfigError(
            f"{path} cannot be written: {fault.strerror}", mend="make log/ a folder of yours"
        ) from fault
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
