# SPDX-License-Identifier: Apache-2.0
"""The scheduler of the simulation chooses as Nova does."""

import random

from nova import objects
from nova.objects import flavor
from nova.objects import request_spec
from nova.scheduler import filters
from nova.scheduler import weights
import pytest

from blazar_sched.parts.simulate import cloud
from blazar_sched.parts.simulate import policy
from blazar_sched.parts.simulate import scheduler
from blazar_sched.parts.simulate import trace
from blazar_sched.worker import process
from blazar_sched.worker import request

objects.register_all()

HOUR = 3600
OPTIONS = {'unbounded': 'forever', 'lease_gap_weight_multiplier': 1.5}


@pytest.mark.parametrize('by', [
    policy.FREEPOOL, policy.OURS, policy.without(policy.WEIGHERS)
])
def test_the_host_is_that_of_novas_handlers(by):
    rng = random.Random(3)
    hosts = [trace.Host(f'h{n}', 16, 65536) for n in range(12)]
    there = cloud.Cloud(hosts, 6, by, OPTIONS)
    chosen = []
    with scheduler.following(there.seen, lambda: there.now, **OPTIONS):
        own = there._scheduler
        chain = [
            each for each in (own._bound_filter, own._other_filter) if each
        ]
        for number in range(60):
            there.now += HOUR
            lifetime = rng.choice([None, HOUR, 24 * HOUR])
            vcpus, kind = rng.choice([1, 4]), trace.UNBOUNDED
            if lifetime is not None:
                kind = rng.choice([trace.BOUNDED, trace.PREEMPTIBLE])
            spec = scheduler.spec(
                f'{number:032x}', vcpus, vcpus * 1024, lifetime,
                kind == trace.PREEMPTIBLE,
            )
            states = [each.state for each in there.hosts if each.has_room(
                vcpus, vcpus * 1024
            )]
            passing = filters.HostFilterHandler().get_filtered_objects(
                chain, states, spec
            )
            best = weights.HostWeightHandler().get_weighed_objects(
                own._weighers, passing, spec
            )
            found = own.choose(states, spec)
            assert found is (best[0].obj if best else None)
            chosen.append(found)
            there.boot(f'{number:032x}', trace.Instance(
                there.now, HOUR, vcpus, vcpus * 1024, kind, lifetime
            ))
    # A control: the choice is not always the same.
    assert len(set(map(id, chosen))) > 3


@pytest.mark.parametrize('asked', [
    {}, {'lifetime': HOUR}, {'preemptible': True},
    {'lifetime': 48 * HOUR, 'preemptible': True},
    {'reservation_id': 'reservation-1'},
])
def test_a_request_is_read_as_novas_is(asked):
    own = scheduler.spec('1' * 32, 4, 2048, **asked)
    of_nova = request_spec.RequestSpec(
        instance_uuid=own.instance_uuid, project_id=own.project_id,
        flavor=flavor.Flavor(
            vcpus=4, memory_mb=2048, root_gb=0, ephemeral_gb=0, swap=0,
            extra_specs=own.extra_specs,
        ),
        scheduler_hints=own.scheduler_hints,
    )
    there = cloud.Cloud([], 0, policy.OURS, {'unbounded': 'relocate'})
    first, second = (
        request.read_request(
            each, there.seen, there.now, process.CONF.blazar_sched
        )
        for each in (own, of_nova)
    )
    assert first == second
    assert first.bound == ('reservation_id' in asked)
