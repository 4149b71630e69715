# SPDX-License-Identifier: Apache-2.0
"""Reservations of devices, which have child providers of their own."""

import pytest

from tests.cloud import account
from tests.cloud import person
from tests.cloud import polling

# Two cards of one GPU in each host.
HOSTS, CARDS = ('compute-1', 'compute-2'), 2
GPU = 'CUSTOM_GPU'


@pytest.fixture
def cards(admin, register, placement):
    """Each host has child providers with GPUs, as those of a real driver."""
    placement.add_class(GPU)
    made = [
        placement.add_child(host, f'{host}_gpu_{number}', {GPU: 1})
        for host in HOSTS
        for number in range(CARDS)
    ]
    for host in HOSTS:
        register(host)
    yield made
    # An inventory in use cannot be deleted.
    account.clear(admin)
    for provider in made:
        polling.until(lambda each=provider: placement.empty(each))


@pytest.fixture
def flavor(new_flavor):
    """The id of a flavor with a GPU."""
    return new_flavor(**{f'resources:{GPU}': '1'})


def book(who, flavor, amount):
    """Reserve a flavor once the service knows the flavor and the devices."""
    wanted = {
        'resource_type': 'flavor:instance', 'flavor_id': flavor,
        'amount': amount, 'affinity': None,
    }

    def look():
        try:
            return who.book(wanted)
        except person.Refused:
            return None

    return who.wait_for(polling.until(look), 'ACTIVE')


def test_three_gpus_from_start_to_end(
    demo, alt, nova, placement, cards, flavor
):
    lease = book(demo, flavor, 3)
    [reservation] = lease['reservations']
    assert nova.flavor(reservation['id']).extra_specs[f'resources:{GPU}'] == (
        '1'
    )
    with pytest.raises(person.Refused, match='NotEnoughHosts'):
        demo.book({
            'resource_type': 'flavor:instance', 'flavor_id': flavor,
            'amount': 2, 'affinity': None,
        })

    # Others get the GPU that is left, and no other.
    other = alt.boot('other', flavor)
    assert alt.finds_no_host('another', flavor)
    servers = [
        demo.boot(f'mine-{number}', reservation['id']) for number in range(3)
    ]
    used = [placement.used_by(each['id'], GPU) for each in (other, *servers)]
    # Each server has a card of its own.
    assert sorted(map(str, used)) == sorted(str({card: 1}) for card in cards)

    demo.end(lease)
    assert [nova.status_of(server) for server in servers] == [None] * 3
    assert nova.flavor(reservation['id']) is None
    assert not placement.has_class(reservation['id'])
    assert placement.used_by(other['id'], GPU) == used[0]
    polling.until(lambda: not any(
        placement.used_by(server['id'], GPU) for server in servers
    ))
    for number in range(3):
        alt.boot(f'later-{number}', flavor)
