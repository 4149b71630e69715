# SPDX-License-Identifier: Apache-2.0
"""Actions of projects on series: create, repeat, change, delete."""

import datetime

from blazar_sched.domain import states
from tests.simulation import features
from tests.simulation import looks
from tests.simulation.actions import leases
from tests.simulation.actions import registry
from tests.simulation.promises.registry import Broken
from tests.simulation.promises.series import SKEW

HOUR = 3600


@registry.action(6, features.SERIES)
def create_series(world):
    """Create a series that recurs hourly."""
    draw = world.random
    start = world.time + draw.choice((60, 900, HOUR))
    key = f's{len(world.series.asked)}'
    world.series.asked[key] = world.some_project(), {
        'name': 'series',
        'rrule': f'FREQ=HOURLY;COUNT={draw.choice((2, 3, 5))}',
        'time_zone': 'UTC',
        'start': datetime.datetime.fromtimestamp(
            start, datetime.UTC
        ).strftime('%Y-%m-%dT%H:%M:%S'),
        'duration': draw.choice((120, 1200, HOUR)),
        'reservations': [leases.reservation(world)],
        'if_no_room': draw.choice(('refuse', 'skip')),
    }
    _create(world, key)


@registry.action(2, features.SERIES)
def create_series_again(world):
    """Repeat a request, as a client without a response does."""
    if world.series.asked:
        _create(world, world.random.choice(list(world.series.asked)))


@registry.action(3, features.SERIES)
def change_series(world):
    """Change the leases of a series that have not started."""
    if not world.series.keys:
        return
    draw = world.random
    id_ = draw.choice(list(world.series.keys))
    body = draw.choice((
        {'duration': draw.choice((120, 1200))},
        {'reservations': [leases.reservation(world)]},
        {'if_no_room': 'skip'},
    ))
    leases_ = [e for e in world.ledger.leases() if e.series_id == id_]
    since = world.time - SKEW
    if leases_ and world.happens(0.5):
        body['from'] = draw.choice(leases_).occurrence
        since = max(since, _planned(body['from']))
    _replaced(world, id_, since)
    answer = world.ask('PUT', f'/v1/series/{id_}', body, 'admin')
    if answer.status_code == 200:
        _promised(world, answer.json['series'])
    world.check()


@registry.action(4, features.SERIES)
def move_lease_of_series(world):
    """Move a lease of a series to another time than its occurrence."""
    pending = [
        lease for lease in world.ledger.leases()
        if lease.series_id in world.series.keys
        and lease.status == states.LEASE_PENDING
    ]
    if pending:
        lease = world.random.choice(pending)
        start = lease.start + world.random.choice((-HOUR, HOUR, 2 * HOUR))
        start = max(start, world.time + 60)
        world.change(lease.id, {
            'start_date': looks.date(start),
            'end_date': looks.date(start + lease.window.duration),
        })


@registry.action(2, features.SERIES)
def delete_series(world):
    """Delete a series, and the leases that have not started."""
    if not world.series.keys:
        return
    id_ = world.random.choice(list(world.series.keys))
    _replaced(world, id_)
    answer = world.ask('DELETE', f'/v1/series/{id_}', None, 'admin')
    world.check()
    if answer.status_code == 204 and any(
        lease.series_id == id_ for lease in world.ledger.leases()
    ):
        raise Broken(f'the deleted series {id_} has leases')


@registry.action(2, features.FAULTS)
def spoil_series(world):
    """From now on no manager can book the next leases of a series."""
    if world.series.keys:
        world.series.faulty.add(world.random.choice(list(world.series.keys)))


def _create(world, key):
    project, body = world.series.asked[key]
    answer = world.ask('POST', '/v1/series', body, project, key)
    if answer.status_code != 201:
        return
    made = answer.json['series']
    if world.series.keys.setdefault(made['id'], key) != key:
        raise Broken(f'{key} has created {made["id"]} of another request')
    _promised(world, made)
    world.check()


def _promised(world, made):
    """Promise the leases of a series, as the API shows the leases."""
    for each in made['leases']:
        if each['status'] == states.LEASE_PENDING:
            answer = world.ask(
                'GET', f'/v1/leases/{each["lease_id"]}', None, 'admin'
            )
            if answer.status_code == 200:
                lease = answer.json['lease']
                window = each['start_date'], each['end_date']
                if (lease['start_date'], lease['end_date']) != window:
                    raise Broken(f'{lease} is shown as {each}')
                world.promised.setdefault(
                    lease['id'], {'key': f'{made["id"]} {each["occurrence"]}'}
                )
                world.promise(lease)


def _planned(occurrence):
    return datetime.datetime.fromisoformat(f'{occurrence}+00:00').timestamp()


def _replaced(world, series_id, since=0):
    """Note that the leases of a series may be replaced or deleted.

    :param since: the first start of an occurrence whose lease may be
    """
    for lease in world.ledger.leases():
        if (
            lease.series_id == series_id and lease.id in world.promised
            and _planned(lease.occurrence) >= since
        ):
            world.promised[lease.id]['unsure'] = True
            world.ended_by_users.setdefault(lease.id, world.time)
