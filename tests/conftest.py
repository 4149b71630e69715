# SPDX-License-Identifier: Apache-2.0
"""Nova runs on native threads in these tests.

It refuses to if anything has imported eventlet before, and oslo.messaging
does wherever eventlet is installed. So this comes before any test module.
"""

import importlib.util
import logging
import os

import pytest

from tests import serving

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', '1')

if importlib.util.find_spec('nova') is not None:
    import nova.tests.functional  # noqa: F401


@pytest.fixture
def port():
    return serving.free_port()


@pytest.fixture(autouse=True)
def loggers():
    """Give back what a test changes of logging, which all tests share."""
    root = logging.getLogger()
    handlers = [(each, each.level, each.filters[:]) for each in root.handlers]
    levels = [(each, each.level) for each in [root, *_loggers()]]
    yield
    root.handlers[:] = [each for each, _, _ in handlers]
    for handler, level, filters in handlers:
        handler.setLevel(level)
        handler.filters[:] = filters
    for logger, level in levels:
        # It costs a walk over all loggers.
        if logger.level != level:
            logger.setLevel(level)
    logging.disable(logging.NOTSET)
    for logger in _loggers():
        logger.disabled = False


def _loggers():
    known = logging.root.manager.loggerDict.values()
    return [each for each in known if isinstance(each, logging.Logger)]
