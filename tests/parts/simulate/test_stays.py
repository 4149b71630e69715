# SPDX-License-Identifier: Apache-2.0
"""Who was where, read without the simulation: no promise is broken."""

from collections import Counter
from collections import defaultdict
import dataclasses

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.parts.simulate import lease
from blazar_sched.parts.simulate import policy
from blazar_sched.parts.simulate import simulation
from blazar_sched.parts.simulate import trace

HOUR, DAY = 3600, 86400
SPAN = 6 * DAY
VCPUS, MEMORY_MB, GPUS = 8, 64 * 1024, 2
OPTIONS = {
    'lease_gap_weight_multiplier': 1.0,
    'relocation_headroom': 0.1, 'relocation_host_headroom': 0.1,
}

HOURS = st.integers(0, SPAN // HOUR - 1).map(lambda n: n * HOUR)
INSTANCES = st.lists(
    st.builds(
        lambda at, life, vcpus, kind, factor, gpus: trace.Instance(
            at, life, vcpus, vcpus * 1024, kind,
            None if kind == trace.UNBOUNDED else life * factor, gpus,
        ),
        HOURS, st.integers(1, 4 * 24).map(lambda n: n * HOUR),
        st.integers(1, VCPUS),
        st.sampled_from([trace.UNBOUNDED] * 4 + [
            trace.BOUNDED, trace.PREEMPTIBLE
        ]),
        st.integers(1, 2), st.sampled_from([0, 0, 0, 1, GPUS]),
    ),
    max_size=25,
).map(lambda many: sorted(many, key=lambda each: each.arrival))
BOOKINGS = st.lists(
    st.tuples(
        HOURS, st.integers(1, 48), st.integers(1, 48), st.integers(1, 3),
        st.sampled_from(['whole', 'slots', 'gpus']),
    ),
    max_size=8,
)


def bookings_of(drawn):
    found = []
    for number, (at, ahead, hours, count, kind) in enumerate(drawn):
        start = at + DAY + ahead * HOUR
        demand = {
            'whole': lease._hosts, 'gpus': lease._with_gpu,
            'slots': lease._instances,
        }[kind](count)
        if not demand.whole:
            size = {'VCPU': 2, 'MEMORY_MB': 2048}
            demand = dataclasses.replace(demand, slot={**demand.slot, **size})
        found.append(lease.Booking(
            at, lease._lease(number, start, start + hours * HOUR, demand)
        ))
    return sorted(found, key=lambda each: each.at)


def play(instances, bookings, unbounded):
    hosts = [trace.Host(name, VCPUS, MEMORY_MB, GPUS) for name in 'abcd']
    scenario = simulation.Scenario(
        hosts, instances, bookings, 2, SPAN,
        {**OPTIONS, 'unbounded': unbounded},
    )
    stays = []
    return simulation.simulate(scenario, policy.OURS, stays=stays), stays


def check_capacity(stays):
    """Check that no host has more than it is, at any instant."""
    for host in {each.host for each in stays}:
        for what, most in (('vcpus', VCPUS), ('gpus', GPUS)):
            steps = Counter()
            for each in stays:
                if each.host == host and each.start < each.end:
                    steps[each.start] += getattr(each, what)
                    steps[each.end] -= getattr(each, what)
            used = 0
            for at in sorted(steps):
                used += steps[at]
                assert used <= most, (what, host, at)


def check_lives(instances, stays):
    """Check that every instance but those that yield had its whole life."""
    by_id = defaultdict(list)
    for each in stays:
        if each.kind in (trace.UNBOUNDED, trace.BOUNDED):
            by_id[each.instance].append(each)
    lived = Counter()
    for parts in by_id.values():
        parts.sort(key=lambda each: each.start)
        for one, following in zip(parts, parts[1:], strict=False):
            assert one.end == following.start
        lived[
            parts[0].kind, parts[0].start, parts[-1].end, parts[0].vcpus
        ] += 1
    wanted = Counter(
        (each.kind, each.arrival, min(SPAN, each.arrival + each.lifetime),
         each.vcpus)
        for each in instances
    )
    assert lived <= wanted
    return lived


@pytest.mark.parametrize('unbounded', ['relocate', 'never'])
@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(INSTANCES, BOOKINGS)
def test_no_promise_is_broken(unbounded, instances, drawn):
    found, stays = play(instances, bookings_of(drawn), unbounded)
    check_capacity(stays)
    lived = check_lives(instances, stays)
    assert found.late == 0
    assert found.unplanned == 0
    assert not {trace.UNBOUNDED, trace.BOUNDED} & set(found.evicted)
    counted = Counter(kind for kind, *_ in lived.elements())
    for kind in (trace.UNBOUNDED, trace.BOUNDED):
        assert counted[kind] == found.instances[kind] - found.refused[kind]


@pytest.mark.parametrize('wrong', ['twice', 'gpus', 'short', 'gap'])
def test_the_checks_can_fail(wrong):
    """Controls: a stay that was there twice, too short, or interrupted."""
    one = trace.Instance(0, DAY, 5, 1024, trace.UNBOUNDED)
    _, [stay] = play([one], [], 'relocate')
    broken = {
        'twice': [stay, dataclasses.replace(stay, instance='other')],
        'gpus': [dataclasses.replace(stay, gpus=GPUS + 1)],
        'short': [dataclasses.replace(stay, end=stay.end - 1)],
        'gap': [
            dataclasses.replace(stay, end=HOUR),
            dataclasses.replace(stay, start=2 * HOUR),
        ],
    }[wrong]
    with pytest.raises(AssertionError):
        check_capacity(broken)
        check_lives([one], broken)
