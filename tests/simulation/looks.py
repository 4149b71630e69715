# SPDX-License-Identifier: Apache-2.0
"""How things look: in the form in which they can be compared."""

import dataclasses
import datetime
import json

from blazar_sched.domain import placing
from blazar_sched.replica import puller


def garbled(answer, random_):
    """Return a page with one field changed."""
    changed = dict(answer)
    name = random_.choice(sorted(changed))
    changed[name] = random_.choice((None, 'x', -1, 10**9, [], {}, [['a']]))
    return changed


def size(reservation, own):
    """Return how many hosts or instances its own allocations hold."""
    if reservation.resource_type == 'physical:host':
        return len(own)
    slot = reservation.slot()
    return sum(placing.count_slots(a.amounts, slot) for a in own)


def wanted(reservation):
    """Return how many hosts or instances it was promised at least."""
    parameters = reservation.parameters
    return parameters.get('amount') or parameters['min']


def rebuild(ledger, revision, now):
    """Return the replica that SQL makes, None if it is at another revision."""
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


def image(replica):
    """Return all that a replica knows, as a set of texts."""
    nouns = (replica.hosts, replica.reservations, replica.instances)
    hosts, _, ids, owners, rows, starts, ends, amounts, whole = (
        replica.index.columns()
    )
    width = len(replica.index.resource_classes)
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


def date(at):
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime(
        '%Y-%m-%d %H:%M:%S'
    )


def blazar_date(at):
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime(
        '%Y-%m-%dT%H:%M:%S.000000'
    )
