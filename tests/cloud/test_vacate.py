# SPDX-License-Identifier: Apache-2.0
"""Servers in the way of a lease that will start, on a real cloud."""

import datetime

import pytest

from tests.cloud import person

# Seconds to boot the servers in the way, and to vacate them.
AHEAD = datetime.timedelta(seconds=40)
TOLD = 'blazar_vacate_at'


@pytest.fixture
def preemptible(admin):
    """A flavor whose servers yield."""
    compute = admin.sdk.compute
    flavor = compute.create_flavor(
        name='preemptible', vcpus=1, ram=512, disk=1
    )
    compute.create_flavor_extra_specs(flavor, {'blazar:preemptible': 'true'})
    yield flavor.name
    compute.delete_flavor(flavor)


@pytest.fixture
def metadata(admin):
    return lambda server: admin.sdk.compute.get_server(server['id']).metadata


@pytest.mark.row('C52', 'F44', 'F56', 'F57')
def test_server_in_the_way_is_notified_and_gone_when_a_lease_starts(
    demo, alt, admin, register, preemptible, nova, metadata, until, notified
):
    yielding = alt.boot('yielding', preemptible)
    host = nova.host_of(yielding)
    register(host)
    lease = demo.book(person.hosts(), start=AHEAD)
    # Nova's scheduler is not asked for these servers.
    running, stopped = forced = [
        admin.boot(name, zone=f'nova:{host}') for name in ('runs', 'stopped')
    ]
    admin.sdk.compute.stop_server(stopped['id'])
    until(lambda: TOLD in metadata(stopped))

    lease = demo.wait_for(lease, 'ACTIVE')
    assert not lease['degraded']
    told = {
        payload['instance_id']
        for payload in notified('instance.vacate')
        if payload['lease_id'] == lease['id']
    }
    assert told == {server['id'] for server in (yielding, *forced)}
    assert nova.status_of(yielding) is None
    # Nova live-migrates this server; it can only shelve the other one.
    assert nova.status_of(running) == 'ACTIVE'
    until(lambda: nova.status_of(stopped) == 'ACTIVE')
    assert host not in {nova.host_of(server) for server in forced}
    # The notice in the metadata is removed.
    until(lambda: not any(map(metadata, forced)))
