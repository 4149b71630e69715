# SPDX-License-Identifier: Apache-2.0
"""The output of python-blazarclient, without intended differences."""


def shown(client):
    """Return everything that an administrator is shown, for comparison.

    The objects are sorted, because neither API promises an order.
    """
    return {
        'leases': _by_id(map(_lease, client.lease.list())),
        'hosts': _by_id(map(_host, client.host.list())),
        'floatingips': _by_id(map(_in_seconds, client.floatingip.list())),
        # Blazar stores whether a property is private, but never shows it.
        'properties': sorted(
            (p['property'], p['property_values'])
            for p in client.host.list_properties(detail=True, all=True)
        ),
        'allocations': {
            a['resource_id']: {
                (r['id'], r['lease_id'], r['start_date'], r['end_date'])
                for r in a['reservations']
            }
            for a in client.allocation.list('os-hosts')
        },
    }


def _by_id(many):
    return sorted(many, key=lambda each: each['id'])


def _in_seconds(each):
    """Cut off the fractions of Blazar's times, which only MySQL drops."""
    return {
        name: value and value[:19] if name.endswith('_at') else value
        for name, value in each.items()
    }


def _lease(lease):
    if lease['status'] == 'TERMINATED':
        # The lease ended in its first minute: Blazar shows no length.
        for each in (lease, *lease['events']):
            each.pop('end_date', None)
            each.pop('time', None)
    return {
        **_in_seconds(lease),
        'reservations': _by_id(map(_reservation, lease['reservations'])),
        'events': _by_id(map(_in_seconds, lease['events'])),
    }


def _reservation(reservation):
    kept = _in_seconds(reservation)
    # The id of a row in a table that only Blazar has.
    del kept['resource_id']
    if reservation['resource_type'] == 'flavor:instance':
        # Blazar's own copy of the flavor.
        del kept['resource_properties']
    return kept


def _host(host):
    names = (
        'id', 'hypervisor_hostname', 'service_name', 'vcpus', 'memory_mb',
        'local_gb', 'reservable', 'created_at', 'gpu', 'rack',
    )  # fmt: skip
    return _in_seconds({n: host[n] for n in names if n in host})
