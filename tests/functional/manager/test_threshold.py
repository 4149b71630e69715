# SPDX-License-Identifier: Apache-2.0
"""Thresholds on a real ledger: what is told, by whom, and how often."""

import contextlib
import hashlib
import hmac
import json
import random
import socket

from oslo_messaging.notify import _impl_test
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.flavor import Flavor
from blazar_sched.service import metrics
from blazar_sched.service.manager import threshold
from tests import told

LOW, RECOVERED = 'capacity.low', 'capacity.recovered'
SECRET = 'hush'


@pytest.fixture
def hook():
    hook = told.Hook()
    yield hook
    hook.stop()


@pytest.fixture
def conf(conf, hook):
    _impl_test.reset()
    conf.set_override('driver', ['test'], 'oslo_messaging_notifications')
    conf.set_override('capacity_url', hook.url, 'webhook')
    conf.set_override('secret', SECRET, 'webhook')
    yield conf
    _impl_test.reset()


@pytest.fixture
def world(world):
    for name in 'abc':
        world.add_host(name, rack='7')
    return world


@pytest.fixture
def other(world, conf):
    other = world.another(conf)
    yield other
    other.ledger.close()


@pytest.fixture
def make(conf):
    """make(field=value, …) -> a threshold that is added to the options."""

    def make(**values):
        old = conf.manager.capacity_threshold
        conf.set_override('capacity_threshold', [*old, json.dumps({
            'name': 'rack 7', 'project_id': 'project', 'below': 3,
            'resource_properties': ['==', '$rack', '7'], **values,
        })], 'manager')
        return conf.manager.capacity_threshold[-1]

    return make


def free(world):
    """Return the numbers that the thresholds are compared with now."""
    world.manager.thresholds.step()
    return list(world.manager.thresholds.free.values())


def sent(manager):
    """Return the notifications since the last call: (type, payload)."""
    manager.notifier.step()
    messages = [message for _, message, *_ in _impl_test.NOTIFICATIONS]
    _impl_test.reset()
    return [
        (m['event_type'], m['payload']) for m in messages
        if m['event_type'] in (LOW, RECOVERED)
    ]


def look(manager):
    """Return the types of the notifications of a step of a manager."""
    manager.thresholds.step()
    return [event_type for event_type, _ in sent(manager)]


@pytest.mark.row('F90')
def test_told_once_in_both_directions(world, whole, make):
    made = make()
    assert free(world) == [3]
    assert look(world.manager) == []

    lease = world.create(whole(), start='now', end=1000)
    world.clock.now += 5
    world.manager.thresholds.step()
    [(event_type, payload)] = sent(world.manager)
    assert event_type == LOW
    assert payload == {
        'threshold_id': made.id,
        'name': 'rack 7',
        'project_id': 'project',
        'resource_properties': '["==", "$rack", "7"]',
        'flavor_id': None,
        'below': 3,
        'within': 0,
        'free': 2,
        'since': '2027-01-15T08:00:05.000000',
    }
    assert look(world.manager) == []
    # Another host less is no other crossing.
    world.create(whole(), start='now', end=1000)
    assert look(world.manager) == []
    assert free(world) == [1]

    world.clock.now += 1000
    world.run()
    assert look(world.manager) == [RECOVERED]
    world.clock.now += 3600
    assert look(world.manager) == []
    assert free(world) == [3]
    assert world.lease(lease).status == 'TERMINATED'


def test_low_from_the_beginning_is_told(world, make):
    make(below=4)
    assert look(world.manager) == [LOW]


def test_a_shortage_to_come_is_told_when_it_is_near_enough(world, whole, make):
    make(within=600)
    world.create(whole(), start=1000, end=2000)
    assert look(world.manager) == []
    # Nothing changes in the ledger meanwhile.
    world.clock.now += 400
    assert look(world.manager) == []
    world.clock.now += 60
    assert look(world.manager) == [LOW]


def test_hosts_that_fail_or_are_closed_are_not_free(world, make):
    make()
    world.fail('a')
    assert look(world.manager) == [LOW]
    world.set_up('a')
    assert look(world.manager) == [RECOVERED]
    world.manager.maintenances.create({
        'name': 'power', 'reason': '', 'start': None, 'end': world.now + 60,
        'hosts': ['a'], 'resource_properties': None,
    })
    assert look(world.manager) == [LOW]


def test_instances_of_a_flavor(world, slots, make):
    world.nova.known_flavors = [Flavor('f', 'small', 4, 512, 1)]
    world.manager.flavors.sync()
    make(flavor_id='f', below=5)
    assert free(world) == [6]
    world.create(slots(1, 8), start='now', end=1000)
    assert look(world.manager) == [LOW]
    # Nobody can reserve instances of a flavor that is gone.
    world.nova.known_flavors = []
    world.manager.flavors.sync()
    assert free(world) == [0]


def test_of_the_leases_of_another_project(world, make):
    world.hosts.update(world.host('a').id, {'projects': 'p7'})
    for project_id in 'project', 'p7':
        make(project_id=project_id)
    assert free(world) == [2, 3]


def test_a_threshold_that_is_taken_out_is_told_no_more(
    world, whole, make, conf
):
    make()
    conf.set_override('capacity_threshold', [], 'manager')
    world.create(whole(), start='now', end=1000)
    assert look(world.manager) == []


def test_a_threshold_of_another_number_is_another_threshold(
    world, whole, make, conf
):
    make(below=4)
    assert look(world.manager) == [LOW]
    conf.set_override('capacity_threshold', [], 'manager')
    make(below=3)
    assert look(world.manager) == []
    world.create(whole(), start='now', end=1000)
    assert look(world.manager) == [LOW]


def test_two_managers_and_one_that_is_new_tell_once(
    world, other, conf, whole, make
):
    make()
    found = []
    for manager in (world.manager, other):
        manager.thresholds.step()
    world.create(whole(), start='now', end=1000)
    for manager in (other, world.manager, other):
        found += look(manager)
    assert found == [LOW]
    world.clock.now += 1000
    world.run()
    new = world.another(conf)
    for manager in (new, world.manager, other):
        found += look(manager)
    assert found == [LOW, RECOVERED]
    new.ledger.close()


def test_managers_that_compare_at_once(
    world, other, whole, make, monkeypatch
):
    """Both have read the threshold before either of them has written it."""
    make()
    world.create(whole(), start='now', end=1000)
    old = other.ledger.thresholds()
    found = look(world.manager)
    monkeypatch.setattr(other.ledger, 'thresholds', lambda: old)
    other.thresholds.step()
    monkeypatch.undo()
    assert found + look(other) == [LOW]


@pytest.mark.parametrize('point', ['threshold:changed', 'threshold:sent'])
def test_a_manager_that_is_killed_leaves_it_to_the_other(
    world, other, whole, killed, point, make
):
    make()
    world.create(whole(), start='now', end=1000)
    with killed(point):
        world.manager.thresholds.step()
    before = [event_type for event_type, _ in sent(world.manager)]
    world.clock.now += threshold.TRY_AGAIN
    assert before + look(other) == {
        'threshold:changed': [LOW],
        # The manager that is killed may have sent the notification.
        'threshold:sent': [LOW, LOW],
    }[point]
    world.clock.now += threshold.TRY_AGAIN
    assert look(other) == []


class TestWebhook:
    def test_what_is_sent(self, world, hook, whole, make):
        made = make()
        world.clock.now += 1
        world.create(whole(), start='now', end=1000)
        world.manager.thresholds.step()
        [(_, payload)] = sent(world.manager)
        world.manager.thresholds.post()
        [(_, headers, body)] = hook.requests()
        assert json.loads(body) == {'event_type': LOW, 'payload': payload}
        assert headers['Idempotency-Key'] == f'{made.id}.{world.now}'
        assert headers['X-Signature'] == hmac.new(
            SECRET.encode(), body, hashlib.sha256
        ).hexdigest()
        world.clock.now += 3600
        world.manager.thresholds.post()
        assert hook.requests() == []

    def test_changes_in_one_second_have_different_keys(
        self, world, other, hook, whole, make
    ):
        make()
        for _ in range(3):
            lease = world.create(whole(), start='now', end=1000)
            for manager in world.manager, other:
                manager.thresholds.step()
                manager.thresholds.post()
                if manager is world.manager:
                    world.leases.delete(lease.id, None)
        keys = [h['Idempotency-Key'] for _, h, _ in hook.requests()]
        assert len(keys) == len(set(keys)) == 6

    def test_a_refused_request_is_repeated(
        self, world, other, hook, conf, make
    ):
        make(below=4)
        world.manager.thresholds.step()
        hook.answers = [500]
        with pytest.raises(exception.Unavailable, match='500'):
            world.manager.thresholds.post()
        other.thresholds.post()
        [(_, first, _)] = hook.requests()
        world.clock.now += threshold.TRY_AGAIN + int(conf.webhook.timeout)
        other.thresholds.post()
        world.manager.thresholds.post()
        [(_, second, _)] = hook.requests()
        assert first['Idempotency-Key'] == second['Idempotency-Key']
        # The notification is not repeated.
        assert look(world.manager) == [LOW]

    def test_one_that_fails_keeps_no_other_back(self, world, hook, make):
        for name in 'ab':
            make(name=name, below=4)
        world.manager.thresholds.step()
        hook.answers = [500]
        with pytest.raises(exception.Unavailable):
            world.manager.thresholds.post()
        assert len(hook.requests()) == 2

    def test_without_a_url_nothing_is_sent(self, world, hook, conf, make):
        conf.clear_override('capacity_url', 'webhook')
        make(below=4)
        assert look(world.manager) == [LOW]
        world.manager.thresholds.post()
        assert hook.requests() == []

    def test_one_that_hangs_delays_nothing_else(
        self, world, conf, whole, make
    ):
        with socket.create_server(('127.0.0.1', 0)) as silent:
            port = silent.getsockname()[1]
            conf.set_override(
                'capacity_url', f'http://127.0.0.1:{port}/', 'webhook'
            )
            conf.set_override('timeout', 60.0, 'webhook')
            make(below=4)
            comparing, posting = world.manager.thresholds.loops
            posting.start()
            assert look(world.manager) == [LOW]
            silent.settimeout(30)
            connection, _ = silent.accept()
            with connection:
                # The request is on its way, and is not answered.
                assert connection.recv(4) == b'POST'
                make()
                world.create(whole(), start='now', end=1000)
                assert look(world.manager) == [LOW]
            posting.stop()


def test_the_number_is_a_metric(world, whole, make, conf):
    made = make()
    world.create(whole(), start='now', end=1000)
    world.manager.thresholds.step()

    def value():
        return world.manager.metrics.registry.get_sample_value(
            metrics.FREE.name,
            {'threshold_id': made.id, 'name': 'rack 7'},
        )

    assert value() == 2
    conf.clear_override('capacity_threshold', 'manager')
    world.manager.thresholds.step()
    assert value() is None


def test_each_crossing_is_told_by_brute_force(world, other, whole, make):
    """Random leases, compared with the leases that hold a host meanwhile."""
    draw = random.Random(7)
    below, within = 2, 50
    make(below=below, within=within)
    names = sorted(h.uuid for h in world.ledger.hosts())
    leases, low, crossings = [], False, 0
    for _ in range(150):
        world.clock.now += draw.randrange(1, 30)
        if draw.random() < .5:
            start = draw.randrange(1, 100)
            with contextlib.suppress(exception.NotEnoughHostsAvailable):
                leases.append(world.create(
                    whole(), start=start, end=start + draw.randrange(1, 60)
                ))
        elif leases and draw.random() < .5:
            world.leases.delete(leases.pop().id, None)
        world.run()
        taken = {
            allocation.host for allocation, _ in world.ledger.allocations()
            if allocation.start < world.now + within
            and world.now < allocation.end
        }
        free = len(set(names) - taken)
        # Not even within one minute may a step be left out.
        for manager in (world.manager, other):
            manager.thresholds._compared = None
        found = look(draw.choice([world.manager, other]))
        found += look(world.manager) + look(other)
        expected = []
        if (free < below) != low:
            low = not low
            crossings += 1
            expected = [LOW if low else RECOVERED]
        assert found == expected
    assert crossings > 10
