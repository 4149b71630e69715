# SPDX-License-Identifier: Apache-2.0
"""Real services in processes, on real servers, to be killed.

The tests run on the servers that are named: `make test-services` names some.
Tests that can use SQLite use SQLite first.
"""

import contextlib
import pathlib

import pytest

from tests.fault.fleet import Fleet
from tests.fault.processes import Processes
from tests.services import broker
from tests.services import database
from tests.standins.served import ServedCloud

HOSTS = ('compute-1', 'compute-2')


def pytest_collection_modifyitems(items):
    unnamed = not database.servers() or broker.named() is None
    for item in items:
        if item.path.is_relative_to(pathlib.Path(__file__).parent):
            item.add_marker('services')
            if unnamed:
                item.add_marker(
                    pytest.mark.skip(
                        f'{database.VARIABLE} and {broker.VARIABLE} are not '
                        'set: see `make test-services`'
                    )
                )


def pytest_terminal_summary(terminalreporter):
    """Print the measurements of the tests."""
    for report in terminalreporter.getreports('passed'):
        for name, value in report.user_properties:
            terminalreporter.write_line(f'{name}: {value}')


@pytest.fixture
def database_on(tmp_path):
    """database_on(engine) -> the URL of a new empty database."""
    with contextlib.ExitStack() as stack:

        def make(engine):
            if engine == 'sqlite':
                return f'sqlite:///{tmp_path}/ledger.sqlite'
            server = database.servers().get(engine)
            if server is None:
                pytest.skip(f'{database.VARIABLE} names no {engine}')
            return stack.enter_context(database.made(server))

        yield make


@pytest.fixture
def processes(tmp_path, database_on):
    # The processes end before the databases are removed.
    processes = Processes(tmp_path)
    yield processes
    processes.end()


@pytest.fixture
def cloud():
    with ServedCloud(HOSTS) as cloud:
        yield cloud


@pytest.fixture
def bus(tmp_path_factory):
    """The transport_url of the broker.

    Request this fixture first: listeners on the broker must end before it
    does.
    """
    with broker.turn(tmp_path_factory.getbasetemp().parent) as url:
        yield url


@pytest.fixture
def new_fleet(tmp_path, cloud, processes):
    """new_fleet(database, bus, managers=, apis=, workers=) -> a Fleet."""
    fleets = []

    def make(database, bus, **numbers):
        fleets.append(
            Fleet(tmp_path, processes, database, bus, cloud, **numbers)
        )
        return fleets[-1]

    yield make
    for fleet in fleets:
        fleet.close()
