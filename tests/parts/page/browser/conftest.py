# SPDX-License-Identifier: Apache-2.0
"""The web page in Chromium, in front of the real API in this process.

BLAZAR_SCHED_TEST_BROWSER names the program, as `make test-page` does.
"""

import datetime
import os
import pathlib
import time

import pytest
import requests

from blazar_sched.conf import service as service_conf
from blazar_sched.service.api import server
from tests.parts.page.browser import __main__ as main
from tests.parts.page.browser import person
from tests.standins.keystone import KeystoneServer

HOUR = 3600
# Names of other projects, which must be nowhere.
SECRETS = ('secret-run', 'secret-soon', 'biology', 'bob')


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(pathlib.Path(__file__).parent):
            item.add_marker('page')
            if main.BROWSER not in os.environ:
                item.add_marker(pytest.mark.skip(
                    f'{main.BROWSER} is not set: see `make test-page`'
                ))


@pytest.fixture(scope='session')
def chromium():
    with person.chromium(os.environ[main.BROWSER]) as browser:
        yield browser


def iso(seconds):
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    return moment.strftime('%Y-%m-%dT%H:%M:%SZ')


class Site:
    """A served API with its hosts; `url` is the page's.

    Times are hours from now.
    """

    def __init__(self, service, conf=None):
        self.service = service
        self.conf = conf or service.conf
        self.port = 0
        self.start()
        self.begun = time.time()

    def start(self):
        """Serve the API, on the same port as before."""
        self.conf.set_override('port', self.port, 'api')
        self.server = server.serve(self.conf, self.service.bus)
        self.port = self.server.port
        self.url = f'http://127.0.0.1:{self.port}/ui/'

    def stop(self):
        self.server.stop()

    def send(self, method, path, token='admin', **body):
        return requests.request(
            method, f'http://127.0.0.1:{self.port}/v1{path}',
            json=body or None, timeout=30,
            headers={
                'X-Auth-Token': token,
                'OpenStack-API-Version': 'reservation 1.1',
            },
        )

    def book(self, token, name, start, end, hosts=1, **values):
        """Book whole hosts, or another type of reservation; return the lease.
        """
        answer = self.send(
            'POST', '/leases', token, name=name,
            start_date='now' if start == 0 else iso(self.at(start)),
            end_date=iso(self.at(end)),
            reservations=[
                values if 'resource_type' in values
                else {
                    'resource_type': 'physical:host', 'min': hosts,
                    'max': hosts, **values,
                }
            ],
        )
        assert answer.status_code == 201, answer.text
        return answer.json()['lease']

    def at(self, hours):
        return self.begun + hours * HOUR

    def leases(self, token):
        answer = self.send('GET', '/leases', token)
        return {each['name']: each for each in answer.json()['leases']}


@pytest.fixture
def site(service):
    """Four hosts in two racks, and leases of two projects."""
    site = Site(service)
    for number in range(1, 5):
        answer = site.send(
            'POST', '/os-hosts', name=f'compute-{number}',
            rack=str(7 + number % 2),
        )
        assert answer.status_code == 201, answer.text
    yield site
    site.stop()


@pytest.fixture
def world(site):
    """The site with leases now and later."""
    site.book('alice:physics', 'training-run', 0, 10)
    site.book('alice:physics', 'night-batch', 20, 30, on_end='keep')
    site.book('bob:biology', 'secret-run', 0, 40)
    site.book('bob:biology', 'secret-soon', 60, 72, hosts=4)
    return site


@pytest.fixture
def browse(chromium):
    """Return a function that opens the page for a person."""
    people = []

    def browse(site, **options):
        people.append(person.Person(chromium, site.url, **options))
        return people[-1]

    yield browse
    found = [each for one in people for each in one.violations]
    for one in people:
        one.page.context.close()
    # No test may break the policy of the page, or fail in the background.
    assert found == []


@pytest.fixture
def keystone():
    server = KeystoneServer()
    server.add_user('alice', p1=['member', 'reader'], p2=['member', 'reader'])
    server.credentials['c1'] = 'alice', 'p1', 'hidden'
    yield server
    server.stop()


@pytest.fixture
def keystone_site(site, keystone, tmp_path):
    """A second API of the same service, which asks a Keystone."""
    path = tmp_path / 'keystone.conf'
    options = keystone.configuration()
    path.write_text(
        '[api]\nauth_strategy = keystone\nport = 0\nuse_trusts = false\n'
        + options
        + options.replace('[keystone]', '[keystone_authtoken]')
        + f'www_authenticate_uri = {keystone.url}\ninterface = public\n'
        # So that the test need not wait for a cache to forget a token.
        + 'token_cache_time = -1\n'
    )
    for number in (1, 2):
        site.book(f'alice:p{number}', f'of-p{number}', 0, 8)
    second = Site(site.service, service_conf.load(files=[str(path)]))
    yield second
    second.stop()
