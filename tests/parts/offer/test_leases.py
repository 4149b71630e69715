# SPDX-License-Identifier: Apache-2.0
"""Offers and refusals, spare hosts, and the lead of a start."""

import json

from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.offer.manager import Offers
from tests.functional.manager import test_obstacle
from tests.functional.manager import test_offer
from tests.functional.manager.conftest import instances
from tests.functional.manager.test_obstacle import entry

refused = test_obstacle.refused
in_the_way = test_obstacle.refuse
first_start = test_offer.refuse


def test_a_refusal_and_a_search_for_offers_name_the_same_start(
    world, whole, first_start
):
    """The first gap of a host is found, although a later start has room."""
    for name in 'ab':
        world.add_host(name)
    only_b = whole(
        resource_properties=json.dumps(['==', '$hypervisor_hostname', 'b'])
    )
    for start, end in ((10, 1800), (2400, 10000)):
        world.create(only_b, start=start, end=end)
    two = [whole(), whole()]
    offered = Offers(world.manager).search({
        'project_id': 'project', 'user_id': 'user', 'alternatives': [two],
        'start': world.now + 10, 'latest_start': None, 'latest_end': None,
        'duration': 500, 'max_duration': None, 'align': None,
        'best': 'earliest', 'limit': 1, 'distance': 1,
    })['offers'][0]['start'] - world.now

    assert first_start(two, 10, 510) == offered == 1800
    # A window of 700 seconds does not fit into the gap.
    assert first_start(two, 10, 710) == 10000


def test_servers_and_held_offers_are_named(world, in_the_way):
    world.add_host('a')
    world.add_host('b')
    mine = world.add_server('a', 'project', vcpus=8)
    world.add_server('b', 'other', vcpus=3)
    world.manager.instances.sync()
    held = Offers(world.manager).hold(
        {
            'project_id': 'project', 'user_id': 'user',
            'alternatives': [[instances(2)]], 'start': world.now + 90,
            'latest_start': world.now + 90, 'latest_end': None,
            'duration': 60, 'best': 'earliest', 'limit': 1, 'distance': 1,
        },
        600,
    )['offers'][0]['id']
    assert in_the_way(instances(2)) == [
        entry('offer', True, name='', lease_id=held, end=world.now + 150),
        entry('server', True, server_id=mine.uuid, end=FOREVER),
        entry('server', end=FOREVER),
    ]
    others = in_the_way(instances(2), project_id='third')
    assert [(each['kind'], each['hosts']) for each in others] == [
        ('lease', 1), ('server', 2),
    ]


def test_no_spare_host_is_offered(world, whole):
    world.add_host('a')
    world.add_host('b', spare=True)
    found = Offers(world.manager).search({
        'project_id': 'project', 'user_id': 'user',
        'alternatives': [[whole(2, 2)]], 'start': world.now + 100,
        'latest_start': world.now + 100, 'latest_end': None, 'duration': 100,
        'max_duration': None, 'align': None, 'best': 'earliest', 'limit': 1,
        'distance': 3600,
    })
    assert found['offers'] == []
    assert found['nearest']['available'] == 1


def test_a_held_offer_is_accepted_until_it_lapses(world, whole, limit):
    world.add_host('a')
    limit(min_start_lead=100)
    now = world.now
    held = Offers(world.manager).hold({
        'project_id': 'project', 'user_id': 'user', 'start': now + 100,
        'alternatives': [[whole(1, 1)]], 'latest_start': None,
        'latest_end': None, 'duration': 60, 'max_duration': None,
        'align': None, 'best': 'earliest', 'limit': 1, 'distance': 1,
    }, 60)
    world.run(50)
    Offers(world.manager).accept({
        'offer': held['offers'][0]['id'], 'name': 'x',
        'project_id': 'project', 'user_id': 'user', 'before_end': None,
    }, 'key')
