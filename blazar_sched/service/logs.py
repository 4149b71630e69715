# SPDX-License-Identifier: Apache-2.0
"""Logging with oslo.log, with the text of requests escaped in log lines.

Lease names, paths and the texts of other services may contain line ends,
which would forge log lines, and escape sequences, which terminals interpret.
"""

import copy
import logging
from typing import Any

from oslo_config import cfg
from oslo_log import formatters
from oslo_log import log

# The attributes in which oslo.log itself writes escape sequences.
_COLORS = ('color', 'reset_color')


class Formatter(formatters.ContextFormatter):
    """A formatter of oslo.log that escapes unprintable characters.

    A log record is one line; a traceback has as many lines as usual, each
    after oslo.log's own prefix.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        text: str = super().formatMessage(_shown(record))
        return text

    def formatException(
        self, ei: Any, record: logging.LogRecord | None = None
    ) -> str:
        shown = None if record is None else _shown(record)
        text = super().formatException(ei, record=shown)
        return '\n'.join(map(printable, text.split('\n')))


def setup(conf: cfg.ConfigOpts) -> None:
    """Set up logging as `conf` says.

    The formatters of a file that [DEFAULT] log_config_append names belong to
    the operator, and are kept.
    """
    log.setup(conf, 'blazar-sched')
    for handler in logging.getLogger().handlers:
        known: Any = handler.formatter
        if type(known) is formatters.ContextFormatter:
            handler.setFormatter(
                Formatter(
                    datefmt=known.datefmt, project=known.project,
                    version=known.version, config=known.conf,
                )
            )


def _shown(record: logging.LogRecord) -> logging.LogRecord:
    """Return a copy of a log record whose texts are printable."""
    shown = copy.copy(record)
    for name, value in vars(record).items():
        if isinstance(value, str) and name not in _COLORS:
            setattr(shown, name, printable(value))
    return shown


def printable(text: str) -> str:
    """Return `text` with unprintable characters escaped as in Python."""
    if text.isprintable():
        return text
    return ''.join(
        c if c.isprintable() else c.encode('unicode_escape').decode()
        for c in text
    )
