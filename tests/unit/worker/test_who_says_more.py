# SPDX-License-Identifier: Apache-2.0
"""Who says more about an instance never gets less, under any options.

Pairs of requests for the same hosts at the same moment: the second one is
smaller, can be moved, has an end or an earlier one, or is preemptible. Both
are for a new instance, or both move an instance from its host. Of some
instances only the worker knows, which has placed them a moment ago. As each
host alone is asked, the order in which weighers put the hosts does not matter.
"""

import os
import random

import pytest

from blazar_sched import ext
from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance
from blazar_sched.ext import timeline_index
from blazar_sched.replica import accounting
from blazar_sched.replica import instance_record
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker import admission
from blazar_sched.worker import process
from tests import overriding
from tests.unit.worker.test_decision import a_host
from tests.unit.worker.test_decision import a_host_state
from tests.unit.worker.test_decision import a_request
from tests.unit.worker.test_decision import a_reservation
from tests.unit.worker.test_decision import an_allocation
from tests.unit.worker.test_decision import HOUR
from tests.unit.worker.test_decision import id_of
from tests.unit.worker.test_decision import lifetime_filter
from tests.unit.worker.test_decision import NOW

DAY = 86400
PAIRS = int(os.environ.get('BLAZAR_SCHED_PAIRS', 0))
PER_WORLD = 25
POLICIES = 'forever', 'never', 'assume:10m', 'assume:1d', 'relocate'
FIXED = 'forever', 'never', 'assume:10m', 'assume:3d', 'share:0', 'share:0.4'
# The number of the first instance of which only the worker knows.
PLACED = 100
LENGTHS = 60, 400, HOUR, 5 * HOUR, DAY, 2 * DAY, 9 * DAY
TIMES = 0, 200, 900, HOUR, 8 * HOUR, DAY, 3 * DAY, 5 * DAY


def draw_options(rng):
    pick = rng.choice
    return {
        'unbounded': pick((*POLICIES, 'relocate', 'relocate')),
        'unbounded_fixed': pick(FIXED),
        'min_preemptible_runtime': pick((1, 300, 2 * HOUR)),
        'relocation_lead': pick((1, 60, 600)),
        'relocation_cold_notice': pick((1, HOUR)),
        'relocation_shortest_stay': pick((1, 600, 2 * HOUR)),
        'relocation_moves': pick((1, 2, 3)),
        'relocation_notice': pick((0, HOUR, DAY)),
        'relocation_headroom': pick((0.0, 0.1, 0.5)),
        'relocation_host_headroom': pick((0.0, 0.3)),
    }


def draw_world(rng):
    """Return a replica, and a function that returns new HostStates."""
    count = rng.randint(1, 4)
    gpus = [rng.choice((0, 0, 1, 2)) for _ in range(count)]
    nouns = [
        a_host(n, gpus[n], unbounded=rng.choice((None, None, *POLICIES)))
        for n in range(count)
    ]
    for n in range(rng.randint(0, 4)):
        start = rng.choice(TIMES) - rng.choice((0, HOUR))
        on = rng.sample(range(count), rng.randint(1, min(2, count)))
        of = a_reservation(
            n, start, start + rng.choice(LENGTHS[2:]),
            leavable=tuple(id_of('host', h) for h in on if rng.random() < 0.3),
        )
        nouns.append(of)
        nouns += [
            an_allocation(
                f'{n} {h}', h, of, rng.choice((0, 2, 6)),
                rng.randint(0, gpus[h]),
            )
            for h in on
        ]
    used = dict.fromkeys(range(count), 0)
    here = {n: [] for n in range(count)}
    for n in range(1, rng.randint(1, 5)):
        on, vcpus = rng.randrange(count), rng.randint(1, 3)
        if used[on] + vcpus > 8:
            continue
        preemptible = rng.random() < 0.3
        instance = Instance(
            id_of('instance', n), id_of('host', on), 'p',
            {'VCPU': vcpus, 'MEMORY_MB': 512},
            end=rng.choice((window.FOREVER, NOW + rng.choice(LENGTHS))),
            preemptible=preemptible,
            movable='' if preemptible else rng.choice(('', 'live'))
        )
        nouns.append(instance)
        used[on] += vcpus
        here[on].append(instance.uuid)
    replica = state.Replica(accounting.SchedulerAccounting, relocating=True)
    replica.advance(NOW)
    replica.load(7, map(record.encode, nouns))
    return replica, lambda: [
        a_host_state(n, used[n], here[n]) for n in range(count)
    ]


def draw_less(rng):
    """Return the request that says less; gpus, too, are there to be cut."""
    return {
        'vcpus': rng.randint(1, 8), 'gpus': rng.choice((0, 0, 1, 2)),
        'movable': rng.choice(('false', 'false', 'true')),
        'preemptible': rng.random() < 0.1,
        'lifetime': rng.choice((None, None, *LENGTHS)),
    }


def draw_more(rng, less):
    """Return a request that says more than `less`, and may say the same."""
    more = dict(less)
    for what in rng.sample(tuple(less), rng.randint(1, 2)):
        old = less[what]
        if what == 'vcpus':
            more[what] = rng.randint(1, old)
        elif what == 'gpus':
            more[what] = rng.randint(min(1, old), old)
        elif what == 'movable':
            more[what] = 'true'
        elif what == 'preemptible':
            more[what] = True
        else:
            more[what] = rng.choice([
                each for each in LENGTHS if old is None or each <= old
            ])
    return more


def spec_of(asked, number=0):
    asked = dict(asked)
    lifetime = asked.pop('lifetime')
    hints = {} if lifetime is None else {'lifetime': str(lifetime)}
    return a_request(**asked, **hints, number=number)


def admitted(states, spec):
    return lifetime_filter.LifetimeFilter().filter_all(states, spec)


def place_some(rng, states):
    """Place instances on hosts; Nova and the ledger do not know them yet."""
    for number in range(PLACED, PLACED + rng.choice((0, 0, 1, 3))):
        spec = spec_of(draw_less(rng), number)
        if passing := admitted(states(), spec):
            rng.choice(passing).consume_from_request(spec)


def broken(seed, pairs):
    """Return the first pair that breaks the law, None without one."""
    for number in range(pairs // PER_WORLD):
        rng = random.Random(f'{seed} {number}')
        chosen = draw_options(rng)
        replica, states = draw_world(rng)
        with (
            overriding.options(**chosen),
            process.following(replica, lambda: NOW),
        ):
            place_some(rng, states)
            every = range(len(states()))
            for _ in range(PER_WORLD):
                less = draw_less(rng)
                more = draw_more(rng, less)
                # A new instance, or one that may be on a host.
                which = rng.choice((0, 0, 1, 2))
                # Each host alone: of many, not all paths are looked for.
                for hosts in *([n] for n in every), every:
                    if (
                        admitted([states()[n] for n in hosts],
                                 spec_of(less, which))
                        and not admitted([states()[n] for n in hosts],
                                         spec_of(more, which))
                    ):
                        return seed, number, hosts, chosen, which, less, more
    return None


@pytest.fixture(params=[ext.TimelineIndex, timeline_index.TimelineIndex])
def _index(request, monkeypatch):
    monkeypatch.setattr(ext, 'TimelineIndex', request.param)


@pytest.mark.row('F121')
@pytest.mark.usefixtures('_index')
def test_who_says_more_never_gets_less():
    assert broken(1, PAIRS or 1000) is None


@pytest.mark.row('F121')
@pytest.mark.more
def test_who_says_more_never_gets_less_in_many_worlds():
    assert broken(2, PAIRS or 20_000) is None


def _old_refusal(monkeypatch):
    """Refuse what lives for longer than a day, as max_backfill_lifetime did.
    """
    by = admission.Admissions._admission_by

    def old(self, policy):
        seconds = self._request.end - self._now
        is_long = seconds > DAY and self._request.end != window.FOREVER
        return None if is_long else by(self, policy)

    monkeypatch.setattr(admission.Admissions, '_admission_by', old)


def _short_ones_stay(monkeypatch):
    """Move no instance that ends within a day."""
    way_of = instance_record.way_of
    monkeypatch.setattr(instance_record, 'way_of', lambda server, rules: (
        '' if server.end <= NOW + DAY else way_of(server, rules)
    ))


def _whole_lifetime(monkeypatch):
    """Ask for room to a declared end also where no end needs less."""
    by = admission.Admissions._admission_by

    def old(self, policy):
        found = by(self, policy)
        if found is None or self._request.end == window.FOREVER:
            return found
        return found._replace(end=self._request.end, enough=self._request.end)

    monkeypatch.setattr(admission.Admissions, '_admission_by', old)


@pytest.mark.parametrize('put_back', [
    _old_refusal, _short_ones_stay, _whole_lifetime,
])
def test_an_old_rule_is_found(monkeypatch, put_back):
    put_back(monkeypatch)
    assert broken(1, 10_000) is not None
