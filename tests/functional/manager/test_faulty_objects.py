# SPDX-License-Identifier: Apache-2.0
"""An object that a loop cannot handle stops no other object of the loop."""

import dataclasses
import itertools
import operator

import pytest

from blazar_sched.domain import exception
from blazar_sched.placing import overload
from blazar_sched.service import loop
from blazar_sched.service import metrics
from blazar_sched.service.booking import placing_options
from tests import looped
from tests import tables

IDS = 'one', 'faulty', 'another'


@dataclasses.dataclass(frozen=True)
class Some:
    """What a loop reads of an object, whatever the object is."""

    id: str
    name: str = ''
    project_id: str = 'project'
    user_id: str = 'user'
    booked_until: int = 0
    retry_at: int = 0
    missing: tuple = ()
    below: int = 1
    low: bool = False
    notify_at: int | None = 0
    movable: str = ''
    start: int = 0
    end: int = 2**40
    wait_until: int = 2**40
    reason: str = ''

    @property
    def uuid(self):
        return self.id


SOME = [Some(id_) for id_ in IDS]
PAIRS = [(each, each) for each in SOME]


def some(*_, **__):
    return SOME


def ids(*_, **__):
    return list(IDS)


# By the label of the metric: the part with the loop and its step; the method
# that works on one object; and what else is replaced: the list of the objects,
# and the rest of their work.
LOOPS = {
    'healing': ('healer.heal', 'healer.heal_lease', {'healer._ailing': ids}),
    'replanning': ('replanner.replan', 'replanner._flag_short', {
        'replanner._relieve': lambda *_: {},
        'replanner._outlasting': lambda *_: {},
    }),
    'trust deletion': ('trusts.step', 'trusts._delete', {
        'ledger.discarded_trusts': ids,
    }),
    'closing': ('closing.step', 'services.vacater.all_on', {
        'services.vacater.vacate': lambda *_: None,
        'ledger.read_replica': lambda _: PAIRS,
    }),
    'relocation': ('relocations.step', 'relocations._move', {
        'ledger.read_replica': lambda _: PAIRS,
        'relocations._report': lambda *_: None,
        'relocations._plan': lambda *_: [],
        'relocations._drop_needless': lambda *_: None,
    }),
}


@pytest.fixture
def replaced(world, monkeypatch):
    """replaced(owner, path, value): replace an attribute of what is part of an
    object.
    """

    def replace(owner, path, value):
        *parts, name = path.split('.')
        for each in parts:
            owner = getattr(owner, each)
        monkeypatch.setattr(owner, name, value)

    return replace


@pytest.fixture
def failing(world):
    def read(name):
        return world.manager.metrics.registry.get_sample_value(
            metrics.FAILING.name, {'loop': name}
        )

    return read


@pytest.mark.parametrize('name', [*LOOPS, *tables.of('FAULTY')])
def test_a_faulty_object_stops_no_other(
    world, conf, monkeypatch, caplog, replaced, failing, name
):
    owner = world.manager
    if name in LOOPS:
        step, work, others = LOOPS[name]
    else:
        kind, step, work, replacing = tables.of('FAULTY')[name]
        owner, others = looped.of(owner, kind), replacing(some)
    done = []
    faults = [IndexError('a table is too short')]

    def do(each, *_):
        id_ = each if isinstance(each, str) else each.id
        if id_ == 'faulty' and faults:
            raise faults[0]
        done.append(id_)
        return []

    def take():
        operator.attrgetter(step)(owner)()

    for (group, option), value in tables.of('BUSY').items():
        conf.set_override(option, value, group)
    monkeypatch.setattr(overload, 'overloaded_hosts', ids)
    monkeypatch.setattr(placing_options, 'rules', lambda _: object())
    replaced(owner, work, do)
    for path, value in others.items():
        replaced(owner, path, value)

    take()
    assert done == ['one', 'another']
    assert f'{name}: faulty failed' in caplog.text
    assert failing(name) == 1
    # The faulty object rests, and the others do not.
    caplog.clear()
    world.clock.now += loop.FIRST_REST - 1
    take()
    assert 'failed' not in caplog.text
    world.clock.now += 1
    faults.clear()
    done.clear()
    take()
    assert 'faulty' in done
    assert failing(name) == 0


def test_object_that_another_service_refuses_is_tried_again_at_once(
    world, failing
):
    tried = []

    def work(id_):
        tried.append(id_)
        if id_ == 'faulty':
            raise exception.Unavailable('Nova is away')

    objects = loop.Objects('some', world.manager.metrics)
    for _ in range(2):
        with pytest.raises(exception.Unavailable):
            objects.each(zip(IDS, IDS, strict=True), work, world.now)
    assert tried == [*IDS, *IDS]
    assert failing('some') == 1


def test_the_pause_of_an_object_doubles(world):
    told = []

    def work(_):
        tries.append(now)
        raise ValueError

    objects = loop.Objects('some', world.manager.metrics, told.append)
    tries = []
    for now in range(0, 20000, 10):
        objects.each([('id', 'object')], work, now)
    pauses = [b - a for a, b in itertools.pairwise(tries)]
    assert pauses == [60, 120, 240, 480, 960, 1920] + 4 * [3600]
    assert told == ['object']
