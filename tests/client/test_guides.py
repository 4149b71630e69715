# SPDX-License-Identifier: Apache-2.0
"""The commands on a page of the user's guide run in the order of the page."""

import pathlib
import re
import shlex

import pytest

from tests import tables
from tests.client import conftest
from tests.standins.clients import add_compute_node
from tests.standins.neutron import NETWORK

USER = pathlib.Path(__file__).parents[2] / 'doc/source/user'
# A command, and the table that it shows, if the page has one.
COMMAND = re.compile(
    r'^ +\$ openstack reservation ((?:.*\\\n)*.*)((?:\n +[+|].*)*)$', re.M
)
HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}


def cells(text):
    """Return the cells of a table, without the words that have digits."""
    return [
        [re.sub(r'\S*\d\S*', '#', cell).strip() for cell in line.split('|')]
        for line in text.splitlines() if '|' in line
    ]


def known_ids(client):
    """Return the id for each placeholder, as the user would read the ids."""
    offers = list(client.offers()) or client.search_offers(
        reservations=[HOST], duration='1h', hold='5m'
    ).offers
    flavor = next(client.flavors()).id
    return {
        '<project id>", "<project id>': 'p2", "p3',
        '<network id>': NETWORK,
        '<flavor id>': flavor,
        'flavor_id=a100': f'flavor_id={flavor}',
        'flavor_id=l40s': f'flavor_id={flavor}',
        '<offer id>': offers[0].id,
        '<reservation id>': next((
            each.reservations[0]['id'] for each in client.leases()
            if each.name in ('day-run', 'training')
        ), ''),
    }


@pytest.mark.parametrize('page', [
    'tutorial', 'leases', 'offers', 'capacity', 'timeline',
    pytest.param('requests', marks=tables.EVERY),
    pytest.param('series', marks=tables.EVERY),
])
def test_the_commands_of_a_page_run_in_its_order(
    page, service, endpoint, connect, tmp_path
):
    service.manager.flavors.sync()
    client = connect().reservation
    # The page of lease requests has one for eight hosts.
    services = service.manager.services
    for n in range(5, 9):
        add_compute_node(
            services.nova, services.placement, f'compute-{n}', 16, 65536, 1000
        )
    for n in range(1, 9):
        client.create_host(name=f'compute-{n}', gpu='a100')
    for n in (100, 101):
        client.create_floating_ip(
            floating_network_id=NETWORK, floating_ip_address=f'203.0.113.{n}'
        )
    if page == 'requests':
        # Somebody has all hosts, so that the request waits.
        client.create_lease(
            name='full', start_date='2030-03-01T00:00:00Z',
            end_date='2030-04-01T00:00:00Z',
            reservations=[{**HOST, 'min': 8, 'max': 8}],
        )
    shell = conftest.Shell('openstack', endpoint, tmp_path)
    lines = COMMAND.findall((USER / f'{page}.rst').read_text())
    assert lines
    for line, shown in lines:
        # The blocks of a page are indented by three.
        typed = line.replace('\\\n   ', '')
        if '<' in typed or 'flavor_id' in typed:
            for name, value in known_ids(client).items():
                typed = typed.replace(name, value)
        answer = shell.do(*shlex.split(typed))
        if page == 'tutorial' and shown:
            assert cells(answer) == cells(shown)
