# SPDX-License-Identifier: Apache-2.0
"""Windows with enough floating IPs, against every window that there is."""

import itertools

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from blazar_sched.domain import exception
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from blazar_sched.parts.floating_ip.floating_ip import Use
from blazar_sched.parts.floating_ip.placing import Free
from blazar_sched.parts.offer.best_search import BestSearch
from blazar_sched.placing.window_search import Bounds
from tests.unit.placing.placements import make_lease

# Nothing begins or ends after this time.
LAST = 16
NETWORKS = st.sampled_from('mn')


@st.composite
def uses(draw):
    """Generate floating IPs, each with windows that do not overlap."""
    found = []
    for number in range(draw(st.integers(0, 4))):
        network = draw(NETWORKS)
        times = sorted(draw(st.sets(st.integers(0, LAST), max_size=6)))
        ends = [*times[1::2], FOREVER] if len(times) % 2 else times[1::2]
        found.append(Use(
            FloatingIP(f'f{number}', network, 's', f'203.0.113.{number}'),
            tuple(map(Window, times[::2], ends)),
        ))
    return found


def reservations(required):
    return st.lists(
        st.builds(
            lambda network, amount, required: ('virtual:floatingip', {
                'network_id': network,
                'amount': max(amount, len(required)),
                'required_floatingips': sorted(required),
            }),
            NETWORKS,
            st.integers(1, 2),
            st.sets(st.sampled_from(required), max_size=2)
            if required else st.just(set()),
        ),
        min_size=1, max_size=3,
    )


ANY = reservations([])
SOME = reservations([f'203.0.113.{n}' for n in range(4)])
WINDOWS = st.builds(
    lambda start, length: Window(
        start, FOREVER if length is None else start + length
    ),
    st.integers(0, LAST), st.integers(1, LAST) | st.none(),
)


def is_free(use, window):
    """Tell whether a floating IP is free in each second."""
    end = LAST + 2 if window.end == FOREVER else window.end
    return not any(
        each.start <= at < each.end
        for at in range(window.start, end) for each in use.windows
    )


def has_room(uses, wanted, window):
    """Tell whether there is an assignment, by trying each."""
    def fits(free, wanted):
        if not wanted:
            return True
        (_, asked), *others = wanted
        known = [f for f in free if f.network_id == asked['network_id']]
        return any(
            set(asked['required_floatingips']) <= {f.address for f in chosen}
            and fits([f for f in free if f not in chosen], others)
            for chosen in itertools.combinations(known, asked['amount'])
        )

    free = [use.floating_ip for use in uses if is_free(use, window)]
    return fits(free, wanted)


def make(wanted):
    return make_lease('asked', 'mine', Window(0, 1), wanted)


@settings(deadline=None, max_examples=500)
@given(uses(), SOME, WINDOWS)
def test_room_is_found_exactly_where_an_assignment_is(uses, wanted, window):
    refusal = Free(uses, make(wanted)).lacking(window)
    assert (refusal is None) == has_room(uses, wanted, window)
    if refusal is not None:
        lacking = refusal.offer['reservation']
        assert not has_room(uses, wanted[:lacking + 1], window)


def test_the_reservation_that_lacks_addresses_is_the_first():
    """A reservation leaves the addresses that the next ones require."""
    free = [
        Use(FloatingIP(f'f{n}', 'n', 's', f'203.0.113.{n}'), ())
        for n in (2, 3)
    ]

    def asked(*required, network='n'):
        return 'virtual:floatingip', {
            'network_id': network, 'amount': 1,
            'required_floatingips': [f'203.0.113.{n}' for n in required],
        }

    for wanted in (
        [asked(), asked(2), asked(3)],
        [asked(), asked(2), asked(3, network='m')],
    ):
        refusal = Free(free, make(wanted)).lacking(Window(0, 1))
        assert refusal.offer['reservation'] == 2


@settings(deadline=None, max_examples=500)
@given(uses(), ANY, WINDOWS)
def test_no_start_before_the_first_has_room(uses, wanted, window):
    """Of one network, the first start has room itself."""
    found = Free(uses, make(wanted)).first_start(window.start, window.duration)
    expected = next(
        (
            at for at in range(window.start, LAST + 1)
            if has_room(uses, wanted, moved(window, at))
        ),
        None,
    )
    if len({asked['network_id'] for _, asked in wanted}) == 1:
        assert found == expected
    else:
        assert expected is None or found is not None and found <= expected


def moved(window, at):
    length = window.duration
    return Window(at, FOREVER if length == FOREVER else at + length)


@settings(deadline=None, max_examples=500)
@given(
    uses(), SOME, st.integers(0, 8), st.integers(0, LAST), st.integers(1, 5),
    st.integers(0, 4),
)
def test_the_search_finds_the_first_and_the_longest_window(
    uses, wanted, first, span, least, more
):
    free = Free(uses, make(wanted))
    bounds = Bounds(first, first + span, least, least + more)

    def attempt(window):
        if free.lacking(window) is not None:
            raise exception.NotEnoughHostsAvailable('none')
        return {}

    search = BestSearch(
        bounds, attempt, free.edges,
        first_start=lambda at: free.first_start(at, least),
    )
    windows = [
        Window(start, start + length)
        for start in range(first, first + span + 1)
        for length in range(least, least + more + 1)
        if has_room(uses, wanted, Window(start, start + length))
    ]
    found = search.earliest(1, 1)
    expected = max(
        (w for w in windows if w.start == windows[0].start),
        key=lambda w: w.end, default=None,
    ) if windows else None
    assert [each.window for each in found] == [expected] * bool(windows)
    if windows:
        [longest] = search.longest(1, 1)
        assert longest.window.duration == max(w.duration for w in windows)
