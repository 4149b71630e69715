# SPDX-License-Identifier: Apache-2.0
"""A manager is killed while it announces the start or the end of a lease."""

import signal
import time

import pytest

from blazar_sched.conf import service
from blazar_sched.domain import event
from blazar_sched.service import faults
from blazar_sched.service.manager.manager import Manager
from tests import told
from tests.fault.site import Deployment
from tests.fault.site import SLOT
from tests.fault.site import wait_for
from tests.standins.keystone import KeystoneServer

pytestmark = [pytest.mark.row('F58'), pytest.mark.services]

HOUR = 3600


class Place:
    """A site with a receiver of announcements, and managers."""

    def __init__(self, site, processes):
        self.mail = told.Mail()
        self.hook = told.Hook()
        self._keystone = KeystoneServer()
        self._keystone.add_user('user')
        self._keystone.emails['user'] = 'user@example.org'
        self._file = site.file()
        with self._file.open('a') as file:
            file.write(
                f'{self._keystone.configuration()}'
                f'[email]\nsmtp_host = 127.0.0.1\n'
                f'smtp_port = {self.mail.port}\n'
                f'[webhook]\nurl = {self.hook.url}\n'
            )
        self._processes = processes
        # This manager only serves clients, and runs no events.
        self.asked = Manager(service.load(files=[str(self._file)]))
        self.asked.ledger.upgrade()

    def start(self, **environment):
        return self._processes.start(
            'manager', '--config-file', self._file, **environment
        )

    def close(self):
        self.asked.ledger.close()
        for edge in (self.mail, self.hook, self._keystone):
            edge.stop()


@pytest.fixture
def place(tmp_path, database_on, cloud, processes):
    site = Deployment(tmp_path, database_on('sqlite'), cloud=cloud.url)
    place = Place(site, processes)
    for name in cloud.hosts:
        place.asked.hosts.create(name, {})
    yield place
    processes.end()
    place.close()


@pytest.mark.parametrize(
    ('crash_at', 'mails', 'posts'),
    [
        ('before_end_lease:stepped', 1, 1),
        ('before_end_lease:stepped#2', 1, 1),
        ('before_end_lease:worked', 1, 1),
        # The message was accepted, but not recorded: the next attempt repeats
        # the message.
        ('email:asked', 2, 1),
        ('webhook:asked', 1, 2),
    ],
)
def test_repeated_notice_of_an_end_has_the_same_key(
    place, crash_at, mails, posts
):
    first = place.start(**{faults.VARIABLE: crash_at})
    soon = int(time.time()) + 1
    lease = place.asked.leases.create(
        {
            'name': 'lease',
            'project_id': 'project',
            'user_id': 'user',
            'start': 'now',
            'end': soon + HOUR,
            'before_end': soon,
            'reservations': [
                {**SLOT, 'before_end': 'email'},
                {
                    'resource_type': 'physical:host', 'min': 1, 'max': 1,
                    'before_end': 'webhook',
                },
            ],
        }
    )
    assert first.wait() == -signal.SIGKILL
    place.start()
    wait_for(
        'before_end_lease',
        lambda: any(
            e.event_type == event.BEFORE_END_LEASE and e.status == 'DONE'
            for e in place.asked.ledger.lease(lease.id).events
        ),
    )
    ids = [message['Message-ID'] for _, message in place.mail.messages]
    keys = [h['Idempotency-Key'] for _, h, _ in place.hook.requests()]
    assert (len(ids), len(keys)) == (mails, posts)
    assert (len(set(ids)), len(set(keys))) == (1, 1)


@pytest.mark.row('F59')
@pytest.mark.parametrize(('crash_at', 'posts'), [
    ('start_lease:finished', 1),
    ('after_start_lease:claimed', 1),
    ('webhook:asked', 2),
    ('after_start_lease:worked', 1),
])
def test_a_start_is_announced_whatever_is_killed(place, crash_at, posts):
    first = place.start(**{faults.VARIABLE: crash_at})
    lease = place.asked.leases.create({
        'name': 'lease', 'project_id': 'project', 'user_id': 'user',
        'start': 'now', 'end': int(time.time()) + HOUR, 'before_end': None,
        'reservations': [{**SLOT, 'on_start': 'webhook'}],
    })
    assert first.wait() == -signal.SIGKILL
    place.start()
    wait_for(
        'after_start_lease',
        lambda: any(
            e.event_type == event.AFTER_START_LEASE and e.status == 'DONE'
            for e in place.asked.ledger.lease(lease.id).events
        ),
    )
    keys = [h['Idempotency-Key'] for _, h, _ in place.hook.requests()]
    assert (len(keys), len(set(keys))) == (posts, 1)
