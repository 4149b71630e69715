# SPDX-License-Identifier: Apache-2.0
"""Managers are killed between a commit and what its webhooks are sent."""

import collections
import json
import signal
import time

import pytest

from blazar_sched.conf import service
from blazar_sched.parts.notify import models
from blazar_sched.service import faults
from blazar_sched.service.manager.manager import Manager
from tests import told
from tests.fault.site import Deployment
from tests.fault.site import SLOT
from tests.fault.site import wait_for
from tests.parts.notify import sender

pytestmark = pytest.mark.services

HOUR = 3600
LEASES, CHANGES, KILLS = 3, 4, 6


class Place:
    """A site with the receiver of a webhook, and managers to be killed."""

    def __init__(self, site, processes):
        self.hook = told.Hook()
        self._processes = processes
        self._file = site.file()
        with self._file.open('a') as file:
            file.write(
                '[webhook]\nallowed_networks = 127.0.0.0/8\ntimeout = 1\n'
            )
        # This manager only serves clients: it runs no events, and sends
        # nothing.
        self.asked = Manager(service.load(files=[str(self._file)]))
        self.asked.ledger.upgrade()
        self.seen = []

    def start(self, **environment):
        return self._processes.fork(
            sender.serve, str(self._file), **environment
        )

    def create(self, name, start='now'):
        return self.asked.leases.create({
            'name': name, 'project_id': 'project', 'user_id': 'user',
            'start': start, 'end': int(time.time()) + 2 * HOUR,
            'before_end': None, 'reservations': [SLOT],
        })

    def posted(self):
        """Return all requests so far: (id, type, payload)."""
        for _, headers, body in self.hook.requests():
            content = json.loads(body)
            self.seen.append(
                (headers['webhook-id'], content['type'], content['data'])
            )
        return self.seen

    def all_is_sent(self):
        soon = int(time.time()) + HOUR
        return not self.asked.ledger.run(models.due, soon, 1)

    def close(self):
        self.asked.ledger.close()
        self.hook.stop()


@pytest.fixture
def place(tmp_path, database_on, cloud, processes):
    site = Deployment(tmp_path, database_on('sqlite'), cloud=cloud.url)
    place = Place(site, processes)
    for name in cloud.hosts:
        place.asked.hosts.create(name, {})
    sender.webhooks(place.asked).create({
        'project_id': 'project', 'url': place.hook.url, 'events': ['lease.*'],
    })
    yield place
    processes.end()
    place.close()


@pytest.mark.parametrize(('crash_at', 'repeated'), [
    # After the commit, before any request.
    ('start_lease:finished', 0),
    # After the request, before it is recorded.
    ('webhook:sent', 1),
    ('webhook:sent#2', 2),
])
def test_another_manager_sends_what_a_killed_one_has_not(
    place, crash_at, repeated
):
    first = place.start(**{faults.VARIABLE: crash_at})
    lease = place.create('lease')
    assert first.wait() == -signal.SIGKILL
    before = len(place.posted())
    place.start()
    wait_for('the start', lambda: 'lease.event.start_lease' in {
        event_type for _, event_type, _ in place.posted()
    } and place.all_is_sent())
    firsts = list(dict.fromkeys(
        (id_, event_type) for id_, event_type, _ in place.posted()
    ))
    assert [event_type for _, event_type in firsts] == [
        'lease.create', 'lease.event.start_lease'
    ]
    assert {data['lease_id'] for *_, data in place.posted()} == {lease.id}
    if repeated:
        assert before == repeated
        assert len(place.posted()) >= len(firsts) + 1


def test_kill_9_at_any_time_loses_none_and_keeps_the_order(place):
    """Each event at least once, and in the order of each lease's changes."""
    soon = int(time.time()) + HOUR
    leases = [place.create(f'lease {n}', soon).id for n in range(LEASES)]
    told_of = collections.defaultdict(lambda: ['created'])
    manager = place.start()
    killed = change = 0
    while killed < KILLS or change < CHANGES:
        # The last managers only send what others have left.
        if change < CHANGES:
            for id_ in leases:
                place.asked.leases.update(id_, None, {'name': str(change)})
                told_of[id_].append(str(change))
            change += 1
        if killed < KILLS:
            known = len(place.posted())
            wait_for('a request', lambda known=known: (
                len(place.posted()) > known or place.all_is_sent()
            ))
            assert manager.kill() == -signal.SIGKILL
            killed += 1
            manager = place.start()
    wait_for('the last', place.all_is_sent)
    got = collections.defaultdict(dict)
    for id_, event_type, data in place.posted():
        name = 'created' if event_type == 'lease.create' else data['name']
        got[data['lease_id']].setdefault(id_, name)
    assert {id_: list(each.values()) for id_, each in got.items()} == told_of
