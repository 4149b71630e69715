# SPDX-License-Identifier: Apache-2.0
"""The servers of a reservation, found by one function for all callers."""

import dataclasses

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.demand import VIRTUAL_INSTANCE
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import server_reservation
from blazar_sched.replica import state
from blazar_sched.service.clients import nova

START, END = 100, 200

WHOLE = record.Reservation(
    'r', 'l', 'mine', PHYSICAL_HOST, START, END, projects=('friend',),
    former_projects=('former',),
)
MAGNETIC = dataclasses.replace(WHOLE, magnetic=True)
SLOTS = dataclasses.replace(
    WHOLE, resource_type=VIRTUAL_INSTANCE, slot={'VCPU': 1}
)


def server(project_id='mine', reservation_id=None, created=START):
    return nova.Server(
        uuid='i', node='h1', project_id=project_id, amounts={'VCPU': 1},
        end=window.FOREVER, reservation_id=reservation_id, preemptible=False,
        created=created,
    )


def known(claim=None, on='h1'):
    return Instance('i', on, 'mine', {'VCPU': 1}, claim=claim)


def draws(noun, each, record_=None, on='h1'):
    return server_reservation.draws_on(noun, each, record_, on)


@pytest.mark.parametrize('noun', [WHOLE, MAGNETIC, SLOTS])
@pytest.mark.parametrize('on', ['h1', None])
def test_a_server_that_names_it(noun, on):
    for project_id in ('mine', 'friend', 'former'):
        assert draws(noun, server(project_id, 'r', 0), on=on)
    assert not draws(noun, server('another', 'r'), on=on)
    assert not draws(noun, server('mine', 'another'), on=on)


def test_a_server_that_names_none_is_of_its_own_project():
    """The reservation may be shared with other projects."""
    for noun in (WHOLE, MAGNETIC):
        assert draws(noun, server())
        for project_id in ('friend', 'former', 'another'):
            assert not draws(noun, server(project_id))
    assert not draws(SLOTS, server())


@pytest.mark.parametrize(
    'created, expected',
    [(START - 1, False), (START, True), (END - 1, True), (END, False)],
)
def test_server_created_inside_the_window_draws(created, expected):
    assert draws(WHOLE, server(created=created), known()) is expected
    assert not draws(WHOLE, server(created=created), on=None)


def test_an_older_one_has_come_to_the_host():
    old = server(created=START - 1)
    for noun in (WHOLE, MAGNETIC):
        cleared = dataclasses.replace(noun, cleared=('h1',))
        assert draws(cleared, old)
        assert draws(cleared, old, known(on='h2'))
        # The server existed when the window opened: it is in the way.
        assert not draws(cleared, old, known())


def test_an_older_one_was_there_before_its_record():
    """The start has not cleared the host, or has let the server stay."""
    old = server(created=START - 1)
    elsewhere = dataclasses.replace(WHOLE, cleared=('h2',))
    seen = dataclasses.replace(WHOLE, cleared=('h1',), in_the_way=('i',))
    for noun in (WHOLE, elsewhere, seen):
        for record_ in (None, known(on='h2')):
            assert not draws(noun, old, record_)
    assert draws(seen, old, known('r'))


def test_what_the_ledger_binds_elsewhere_is_anothers():
    for noun in (WHOLE, MAGNETIC):
        assert not draws(noun, server(), known('another'))
        assert draws(noun, server(created=0), known('r'))


class TestClaim:
    @pytest.fixture
    def replica(self):
        """The reservation has h1; h2 is free."""
        replica = state.Replica(accounting.LedgerAccounting)
        replica.apply(1, [
            *(record.encode(Host(u, u, u)) for u in ('h1', 'h2')),
            record.encode(MAGNETIC),
            record.encode(Allocation('a', 'r', 'h1', START, END, whole=True)),
        ])
        return replica

    def claim(self, replica, now=150, on='h1', **values):
        found = server_reservation.claim(replica, server(**values), on, now)
        return found and found.id

    def put(self, replica, *nouns):
        replica.apply(replica.revision + 1, map(record.encode, nouns))

    def test_in_the_window_and_on_its_host_alone(self, replica):
        assert self.claim(replica) == 'r'
        assert self.claim(replica, on='h2') is None
        assert self.claim(replica, now=END) is None
        assert self.claim(replica, project_id='friend') is None

    @hypothesis.given(
        st.lists(
            st.tuples(
                st.integers(0, 5), st.integers(6, 9),
                st.sampled_from(['mine', 'another']),
                st.dictionaries(
                    st.sampled_from(['a', 'b']), st.sampled_from(['x', 'y'])
                ),
            ),
            max_size=8,
        ),
        st.integers(0, 9),
    )
    @hypothesis.settings(max_examples=50)
    def test_a_label_names_the_open_one_that_ends_last(self, made, created):
        replica = state.Replica(accounting.LedgerAccounting)
        nouns = [
            dataclasses.replace(
                WHOLE, id=f'r{n}', start=start, end=end, project_id=project,
                labels=labels,
            )
            for n, (start, end, project, labels) in enumerate(made)
        ]
        self.put(replica, WHOLE, *nouns)
        found = self.claim(
            replica, created, created=created, reservation_id='label:a=x'
        )
        fitting = [
            (-r.end, r.id) for r in nouns if r.project_id == 'mine'
            and r.labels.get('a') == 'x' and r.start <= created < r.end
        ]
        assert found == (min(fitting)[1] if fitting else None)
        # A reservation that loses its labels, or is over, is not named.
        self.put(replica, *(dataclasses.replace(r, labels={}) for r in nouns))
        assert not replica.labelled

    def test_a_server_stays_in_the_reservation_that_its_label_named(
        self, replica
    ):
        named = {'on': None, 'reservation_id': 'label:a=x'}
        first = dataclasses.replace(WHOLE, labels={'a': 'x'})
        self.put(replica, first)
        assert self.claim(replica, **named) == 'r'
        later = dataclasses.replace(first, id='later', end=END + 1)
        self.put(replica, known('r'), later)
        assert self.claim(replica, **{**named, 'on': 'h1'}) == 'r'
        each = server(reservation_id='label:a=x')
        assert draws(first, each, known('r'))
        assert not draws(later, each, known('r'))
        assert not draws(later, each)

    def test_a_record_speaks_on_after_the_window(self, replica):
        """The end of the reservation is late."""
        self.put(replica, known('r'))
        assert self.claim(replica, now=END) == 'r'

    def test_a_server_that_has_left_is_an_ordinary_one(self, replica):
        self.put(replica, known('r'))
        assert self.claim(replica, on='h2') is None

    def test_a_server_that_moves_in_its_reservation_stays_in_it(self, replica):
        """Also onto a host that the start has not cleared."""
        self.put(
            replica, known('r'),
            Allocation('b', 'r', 'h2', START, END, whole=True),
        )
        for host in ('h1', 'h2'):
            assert self.claim(replica, on=host, created=0) == 'r'

    def test_a_failed_host_that_was_lost_keeps_its_servers(self, replica):
        self.put(
            replica, known('r', on='h2'),
            Host('h2', 'h2', 'h2', reservable=False),
        )
        assert self.claim(replica, on='h2') == 'r'

    def test_a_failed_host_draws_nobody(self, replica):
        self.put(replica, Host('h2', 'h2', 'h2', reservable=False))
        assert self.claim(replica, on='h2') is None

    @pytest.mark.parametrize('hint', [None, 'r'])
    def test_what_is_kept_is_ordinary_from_the_end_on(self, replica, hint):
        self.put(replica, dataclasses.replace(MAGNETIC, on_end='keep'))
        self.put(replica, known('r'))
        assert self.claim(replica, END - 1, reservation_id=hint) == 'r'
        assert self.claim(replica, END, reservation_id=hint) is None
