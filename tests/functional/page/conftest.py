# SPDX-License-Identifier: Apache-2.0
"""The web page in Chromium, in front of the real API in this process.

BLAZAR_SCHED_TEST_BROWSER names the program, as `make test-page` does.
"""

import datetime
import os
import pathlib
import re
import time

import pytest
import requests

from blazar_sched.conf import service as service_conf
from blazar_sched.service.api import server
from tests.functional.page import __main__ as main
from tests.standins.keystone import KeystoneServer

FLAGS = (
    '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update',
    '--disable-sync',
)
HOUR = 3600
# Seconds.
PATIENCE = 15
# Names of other projects, which must be nowhere.
SECRETS = ('secret-run', 'secret-soon', 'biology', 'bob')


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(pathlib.Path(__file__).parent):
            item.add_marker('page')
            if main.BROWSER not in os.environ:
                item.add_marker(
                    pytest.mark.skip(
                        f'{main.BROWSER} is not set: see `make test-page`'
                    )
                )


@pytest.fixture(scope='session')
def chromium():
    """The browser, with an empty folder of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ[main.BROWSER], args=list(FLAGS)
        )
        yield browser
        browser.close()


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
                'OpenStack-API-Version': 'reservation 1.5',
            },
        )

    def book(self, token, name, start, end, hosts=1, **values):
        """Book whole hosts; return the lease."""
        answer = self.send(
            'POST', '/leases', token, name=name,
            start_date='now' if start == 0 else iso(self.at(start)),
            end_date=iso(self.at(end)),
            reservations=[{
                'resource_type': 'physical:host', 'min': hosts,
                'max': hosts, **values,
            }],
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


class Person:
    """A user in front of the page."""

    def __init__(self, page, url):
        self.page = page
        self.url = url
        self.violations = []
        # Every text that came from the service.
        self.answers = []
        page.on('console', self._note)
        page.on('pageerror', lambda e: self.violations.append(str(e)))
        page.on('response', self._keep)
        page.add_init_script(
            'document.addEventListener("securitypolicyviolation", (e) => '
            'console.error("CSP " + e.violatedDirective + e.blockedURI))'
        )

    def _note(self, message):
        # Chromium reports each status of an error; the page expects some.
        if message.type in ('error', 'warning') and not re.match(
            'Failed to load resource', message.text
        ):
            self.violations.append(message.text)

    def _keep(self, response):
        if '/v1/' in response.url:
            self.answers.append(response)

    def open(self, hash_='#span=4d'):
        self.page.goto(f'{self.url}{hash_}')
        self.page.wait_for_selector('#fields input')

    def enter(self, **values):
        """Fill in the fields of the dialog."""
        for name, value in values.items():
            self.page.fill(f'#fields input[name={name}]', value)
        self.page.click('#enter')
        self.page.wait_for_selector('#sign_in', state='hidden')

    def sign_in(self, user='alice', project='physics', hash_='#span=4d'):
        self.open(hash_)
        self.enter(user=user, project=project)
        self.ready()

    def until(self, condition):
        """Wait for a condition; the page may evaluate no text for it."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.page.inner_text('body')
            self.page.wait_for_timeout(30)

    def ready(self):
        self.page.wait_for_selector('.row')
        for part in ('#found', '#now', '#leases'):
            self.until(lambda part=part: self.page.inner_text(part) != '')

    def box(self):
        """Return the left end and the top of the lanes, and their width."""
        box = self.page.locator('.lane').first.bounding_box()
        rows = self.page.locator('#rows').bounding_box()
        return box['x'], rows['y'], box['width']

    def point(self, at, row):
        """Return where a time is in a row."""
        left, top, width = self.box()
        start, span = self.page.evaluate('''async () => {
            const { View } = await import("./view.js");
            const view = new View(() => {});
            return [view.start, view.span];
        }''')
        return left + (at - start) / span * width, top + 34 * row + 17

    def drag(self, start, end, release=True):
        """Drag from one point to another."""
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.down()
        mouse.move(
            (start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=3
        )
        mouse.move(*end, steps=3)
        if release:
            mouse.up()

    def says(self, text):
        """Wait until the notice has a text."""
        self.until(lambda: text in self.page.text_content('#proposal'))

    def text(self):
        """Return the text of the whole document, with its attributes."""
        return self.page.evaluate('document.documentElement.outerHTML')


@pytest.fixture
def browse(chromium):
    """Return a function that opens the page for a person."""
    contexts = []
    people = []

    def browse(site, **options):
        options = {
            'viewport': {'width': 1280, 'height': 900},
            'timezone_id': 'Europe/Berlin', 'locale': 'en-GB', **options,
        }
        context = chromium.new_context(**options)
        context.set_default_timeout(PATIENCE * 1000)
        contexts.append(context)
        people.append(Person(context.new_page(), site.url))
        return people[-1]

    yield browse
    found = [each for person in people for each in person.violations]
    for context in contexts:
        context.close()
    # No test may break the policy of the page, or fail in the background.
    assert found == []


@pytest.fixture
def keystone():
    server = KeystoneServer()
    server.add_user(
        'alice', p1=['member', 'reader'], p2=['member', 'reader']
    )
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
