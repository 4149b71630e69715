# SPDX-License-Identifier: Apache-2.0
"""The command line of python-blazarclient, with real tokens."""

import datetime

import pytest

HOUR = datetime.timedelta(hours=1)
LEASE = ('reservation', 'lease')
HOST = ('reservation', 'host')


def test_hosts_are_registered_described_and_removed(admin):
    made = admin.openstack(*HOST, 'create', '--extra', 'gpu=no', 'compute-1')
    assert made['hypervisor_hostname'] == 'compute-1'
    admin.command(*HOST, 'set', '--extra', 'gpu=yes', made['id'])
    assert admin.openstack(*HOST, 'show', made['id'])['gpu'] == 'yes'
    [shown] = admin.openstack(*HOST, 'list')
    assert shown['hypervisor_hostname'] == 'compute-1'
    admin.command(*HOST, 'delete', made['id'])
    assert admin.openstack(*HOST, 'list') == []


@pytest.mark.row('F64')
def test_a_lease_is_booked_moved_and_cancelled(demo, register, admin):
    register('compute-1')
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(1)
    begins, ends = (
        (tomorrow + datetime.timedelta(hours=hours)).strftime('%Y-%m-%d %H:%M')
        for hours in (0, 1)
    )
    made = demo.openstack(
        *LEASE, 'create', '--start-date', begins, '--end-date', ends,
        '--reservation', 'resource_type=physical:host,min=1,max=1,'
        'hypervisor_properties=,resource_properties=', 'night-run',
    )  # fmt: skip
    assert made['status'] == 'PENDING'
    [allocation] = admin.openstack('reservation', 'allocation', 'list', 'host')
    assert made['id'] in str(allocation)

    def change(*options):
        """Return by how much the start and the end of a lease were moved."""
        demo.command(*LEASE, 'set', *options, 'night-run')
        now = demo.lease(made)
        return [
            datetime.datetime.fromisoformat(now[date])
            - datetime.datetime.fromisoformat(made[date])
            for date in ('start_date', 'end_date')
        ]

    assert change('--prolong-for', '2h') == [0 * HOUR, 2 * HOUR]
    assert change('--defer-by', '1h') == [HOUR, 2 * HOUR]
    assert change('--advance-by', '3h', '--reduce-by', '2h') == [
        -2 * HOUR, 0 * HOUR,
    ]
    demo.command(*LEASE, 'delete', 'night-run')
    assert demo.openstack(*LEASE, 'list') == []
