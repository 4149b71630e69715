# SPDX-License-Identifier: Apache-2.0
"""Logging: oslo.log's, with no text of a request in a line as it came.

Lease names, paths and the texts of other services may have line ends, which
would forge lines, and escape sequences, which terminals obey.
"""

import copy
import logging
from typing import Any

from oslo_config import cfg
from oslo_log import formatters
from oslo_log import log

# What oslo.log itself writes with escape sequences.
_COLORS = ('color', 'reset_color')


class Formatter(formatters.ContextFormatter):
    """oslo.log's, with whatever is not printable escaped.

    A record is one line; a traceback is as many as it has, each of them after
    oslo.log's own prefix.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        text: str = super().formatMessage(_shown(record))
        return text

    def formatException(
        self, ei: Any, *, record: logging.LogRecord | None = None
    ) -> str:
        shown = None if record is None else _shown(record)
        text = super().formatException(ei, record=shown)
        return '\n'.join(map(printable, text.split('\n')))


def setup(conf: cfg.ConfigOpts) -> None:
    """Set logging up as `conf` says.

    The formatters of a file that [DEFAULT] log_config_append names are the
    operator's own, and stay.
    """
    log.setup(conf, 'blazar-sched')
    for handler in logging.getLogger().handlers:
        known: Any = handler.formatter
        if type(known) is formatters.ContextFormatter:
            handler.setFormatter(
                Formatter(
                    datefmt=known.datefmt,
                    project=known.project,
                    version=known.version,
                    config=known.conf,
                )
            )


def _shown(record: logging.LogRecord) -> logging.LogRecord:
    """Return a record like this one whose texts are printable."""
    shown = copy.copy(record)
    for name, value in vars(record).items():
        if isinstance(value, str) and name not in _COLORS:
            setattr(shown, name, printable(value))
    return shown


def printable(text: str) -> str:
    """Return `text` with what is not printable as in a literal of Python."""
    if text.isprintable():
        return text
    return ''.join(
        c if c.isprintable() else c.encode('unicode_escape').decode()
        for c in text
    )
