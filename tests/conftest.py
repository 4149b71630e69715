# SPDX-License-Identifier: Apache-2.0
"""Shared setup of the tests; Nova runs on native threads.

Nova refuses native threads if any module has imported eventlet before, and
oslo.messaging imports eventlet wherever eventlet is installed. Therefore this
setup runs before any test module is imported.
"""

import faulthandler
import gc
import importlib.util
import logging
import os
import sys
import threading
import time
import types

import pytest

from tests import serving

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', '1')

if importlib.util.find_spec('nova') is not None:
    import nova.tests.functional  # noqa: F401


# The parts that the tests know; by default all that are installed.
PARTS = os.environ.get('BLAZAR_SCHED_TEST_PARTS')
if PARTS is not None:
    # The environment of the packaging tests has not what this imports.
    from blazar_sched.service import parts

    for name in parts.installed().keys() - set(PARTS.split(',')):
        del parts.installed()[name]


def pytest_collection_finish():
    """Collect garbage less often, and not among what was imported.

    Nova and the modules of the tests are half a million objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


def pytest_exception_interact(call):
    """Dump all threads where a test has waited for a cloud in vain."""
    if call.excinfo.typename == 'Timeout':
        faulthandler.dump_traceback(sys.__stderr__)


@pytest.fixture
def port():
    return serving.free_port()


@pytest.fixture(scope='session', autouse=True)
def fast_ledgers():
    """Let the ledgers on SQLite share compiled statements, and not wait.

    SQLAlchemy compiles each statement once for each engine, and nearly each
    test has an engine of its own. No test takes the power from the disk, for
    which SQLite waits at each commit.
    """
    if importlib.util.find_spec('sqlalchemy') is None:
        # The environment of the packaging tests has no ledger.
        yield
        return
    from sqlalchemy import event
    from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

    from blazar_sched.service.ledger import engine

    cache = {}
    create = engine.create

    def sharing(*args, **kwargs):
        engines = create(*args, **kwargs)
        if engines[0].name != 'sqlite':
            return engines
        event.listen(engines[0], 'connect', _never_wait_for_the_disk)
        return tuple(
            each.execution_options(compiled_cache=cache) for each in engines
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, 'create', sharing)
        # The dialect is a part of the cache's key.
        patch.setattr(
            SQLiteDialect_pysqlite, '__eq__',
            lambda self, other: type(self) is type(other), raising=False,
        )
        patch.setattr(
            SQLiteDialect_pysqlite, '__hash__', lambda self: hash(type(self)),
            raising=False,
        )
        yield


def _never_wait_for_the_disk(connection, _record):
    connection.execute('PRAGMA synchronous = OFF')


@pytest.fixture(scope='session', autouse=True)
def fast_bus():
    """Wake the listeners of the in-memory bus when a message arrives.

    They look for messages every 50 ms otherwise, so each call takes as long.
    """
    if importlib.util.find_spec('oslo_messaging') is None:
        # The environment of the packaging tests has no bus.
        yield
        return
    from oslo_messaging._drivers import impl_fake

    arrived = threading.Condition()
    deliver = impl_fake.FakeExchange.deliver_message
    stop = impl_fake.FakeListener.stop

    def sleep(seconds):
        with arrived:
            arrived.wait(seconds)

    def waking(call):
        def wake(*args, **kwargs):
            call(*args, **kwargs)
            with arrived:
                arrived.notify_all()
        return wake

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            impl_fake, 'time',
            types.SimpleNamespace(time=time.time, sleep=sleep),
        )
        patch.setattr(
            impl_fake.FakeExchange, 'deliver_message', waking(deliver)
        )
        patch.setattr(impl_fake.FakeListener, 'stop', waking(stop))
        yield


@pytest.fixture(scope='session')
def empty_ledger(tmp_path_factory):
    """The SQLite file of an empty ledger: made once, copied for each test."""
    from blazar_sched.service.ledger.ledger import Ledger
    path = tmp_path_factory.mktemp('ledger') / 'empty.sqlite'
    ledger = Ledger(f'sqlite:///{path}')
    ledger.upgrade()
    ledger.close()
    return path


@pytest.fixture(autouse=True)
def loggers():
    """Restore the configuration of logging, which all tests share."""
    root = logging.getLogger()
    handlers = [(each, each.level, each.filters[:]) for each in root.handlers]
    levels = [(each, each.level) for each in [root, *_loggers()]]
    yield
    root.handlers[:] = [each for each, _, _ in handlers]
    for handler, level, filters in handlers:
        handler.setLevel(level)
        handler.filters[:] = filters
    for logger, level in levels:
        # setLevel walks over all loggers.
        if logger.level != level:
            logger.setLevel(level)
    logging.disable(logging.NOTSET)
    for logger in _loggers():
        logger.disabled = False


def _loggers():
    known = logging.root.manager.loggerDict.values()
    return [each for each in known if isinstance(each, logging.Logger)]
