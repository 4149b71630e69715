# SPDX-License-Identifier: Apache-2.0
"""Representations of objects in which they can be compared."""

import dataclasses
import datetime
import json

from blazar_sched.domain import duration
from blazar_sched.domain import window
from blazar_sched.replica import puller


def garbled(answer, random_):
    """Return a page of records with one field changed.

    A copy that lacks items, or all pages after one, is not among the answers:
    a scheduler cannot tell such a copy from a whole one.
    """
    name = random_.choice(sorted(answer))
    value = random_.choice((None, 'x', -1, 10**9, [], {}, [['a']]))
    if (name, value) in (('items', []), ('next', None)):
        return answer
    return {**answer, name: value}


def size(reservation, own):
    """Return how many hosts or instances a reservation's allocations hold."""
    return reservation.demand.count(own)


def wanted(reservation):
    """Return how many hosts or instances a reservation was promised at least.
    """
    return reservation.demand.least


def rebuild(ledger, revision, now):
    """Return the replica built from SQL, None if SQL is at another revision.
    """
    pages = []
    after = None
    while True:
        pages.append(ledger.snapshot(after, 10**6))
        after = pages[-1]['next']
        if after is None:
            break
    if pages[0]['revision'] != revision:
        return None
    made = puller.Puller(
        lambda method, **kwargs: pages.pop(0) if method == 'snapshot'
        else ledger.changes(**kwargs),
        lambda: 0.0,
        lambda: 1.0,
    )
    made.pull(now)
    return made.copy.replica


def anew(ledger):
    """Return the replica that a manager builds from a ledger when it starts.

    :raises ValueError: if the manager cannot build the replica
    """
    ledger.replica = None
    ledger.warm()
    return ledger.replica


def image(replica):
    """Return the content of a replica as a set of texts."""
    nouns = (replica.hosts, replica.reservations, replica.instances)
    hosts, _, ids, owners, rows, starts, ends, amounts, whole = (
        replica.indexes.main.columns()
    )
    width = len(replica.indexes.main.resource_classes)
    return {
        json.dumps(dataclasses.asdict(noun), sort_keys=True)
        for known in nouns for noun in known.values()
    } | {
        repr((
            id_, owners[n], hosts[rows[n]], starts[n], ends[n],
            list(amounts[n * width : (n + 1) * width]), whole[n],
        ))
        for n, id_ in enumerate(ids)
    }


def ago(at, epoch):
    """Return a time as seconds after `epoch`."""
    return 'never' if at == window.FOREVER else f'{at - epoch:+.0f}s'


def date(at):
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime(
        '%Y-%m-%d %H:%M:%S'
    )


def time(text):
    """Return the time of a text that `date` has made."""
    return int(datetime.datetime.strptime(
        f'{text} +0000', '%Y-%m-%d %H:%M:%S %z'
    ).timestamp())


def shown(at):
    """Return a time as the newest version of the API shows the time."""
    return duration.format_time(at)


def blazar_date(at):
    """Return a time as notifications show the time."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime(
        '%Y-%m-%dT%H:%M:%S.000000'
    )
