# SPDX-License-Identifier: Apache-2.0
"""A database like Blazar 18's, filled by hand with rare states."""

import datetime
import itertools
import json
import uuid

import sqlalchemy as sa

from blazar_sched.parts.blazar import tables as blazar

NOW = datetime.datetime(2026, 11, 22, 12)
HOUR = datetime.timedelta(hours=1)
_TIMES = ('start_date', 'end_date', 'time', 'created_at', 'updated_at')
_NUMBERS = (
    'vcpus', 'memory_mb', 'disk_gb', 'local_gb', 'amount', 'aggregate_id',
    'hypervisor_version', 'total', 'reserved', 'min_unit', 'max_unit',
    'step_size', 'allocation_ratio',
)  # fmt: skip
_FLAGS = (
    'degraded', 'missing_resources', 'resources_changed', 'reservable',
    'private', 'affinity',
)  # fmt: skip
# The statuses of events and reservations for each status of a lease.
_STATUSES = {
    'PENDING': ('UNDONE', 'UNDONE', 'pending'),
    'ACTIVE': ('DONE', 'UNDONE', 'active'),
    'TERMINATED': ('DONE', 'DONE', 'deleted'),
    'ERROR': ('ERROR', 'UNDONE', 'error'),
}


def _type(name):
    if name in _TIMES:
        return sa.DateTime
    if name in _NUMBERS:
        return sa.Integer
    return sa.Boolean if name in _FLAGS else sa.String(255)


class Database:
    """A database; each method adds a row with its dependents, returns its id.
    """

    def __init__(self, url):
        self.url = url
        self._metadata = sa.MetaData()
        for name, columns in blazar.COLUMNS.items():
            sa.Table(
                name, self._metadata,
                *(
                    sa.Column(c, _type(c), primary_key=c == 'id')
                    for c in dict.fromkeys(
                        ('id', *columns, 'created_at', 'updated_at')
                    )
                ),
            )
        self.engine = sa.create_engine(url)
        if self.engine.dialect.name == 'sqlite':
            sa.event.listen(
                self.engine, 'connect',
                lambda c, _: c.execute('PRAGMA synchronous = OFF'),
            )
        self._metadata.create_all(self.engine)
        self._seconds = itertools.count()

    def add(self, table, **values):
        age = datetime.timedelta(seconds=next(self._seconds))
        row = {'id': str(uuid.uuid4()), 'created_at': NOW + age, **values}
        with self.engine.begin() as connection:
            connection.execute(
                sa.insert(self._metadata.tables[table]).values(row)
            )
        return row['id']

    def rows(self, table):
        """Return the rows of a table by id."""
        rows = sa.select(self._metadata.tables[table])
        with self.engine.connect() as connection:
            found = connection.execute(rows).mappings()
            return {row['id']: dict(row) for row in found}

    def all_rows(self):
        return {name: self.rows(name) for name in self._metadata.tables}

    def delete(self, table, id_):
        rows = self._metadata.tables[table]
        with self.engine.begin() as connection:
            connection.execute(sa.delete(rows).where(rows.c.id == id_))

    def set(self, table, id_, **values):
        rows = self._metadata.tables[table]
        with self.engine.begin() as connection:
            connection.execute(
                sa.update(rows).where(rows.c.id == id_).values(values)
            )

    def host(self, name, number='1', **capabilities):
        self.add(
            'computehosts', id=number, hypervisor_hostname=name,
            service_name=name, hypervisor_type='QEMU', hypervisor_version=1,
            cpu_info='', availability_zone='', reservable=True, vcpus=8,
            memory_mb=8192, local_gb=100, trust_id='trust',
        )  # fmt: skip
        for capability, value in capabilities.items():
            property_id = self.add(
                'resource_properties', resource_type='physical:host',
                property_name=capability, private=False,
            )  # fmt: skip
            self.add(
                'computehost_extra_capabilities', computehost_id=number,
                property_id=property_id, capability_value=value,
            )  # fmt: skip
        return number

    def floating_ip(self, network_id, address):
        return self.add(
            'floatingips', floating_network_id=network_id, subnet_id='subnet',
            floating_ip_address=address, reservable=True,
        )  # fmt: skip

    def lease(self, status='PENDING', start=HOUR, end=5 * HOUR, **values):
        """Add a lease with the events that its status requires."""
        id_ = self.add(
            'leases',
            **{
                'name': 'lease', 'user_id': 'user', 'project_id': 'project',
                'start_date': NOW + start, 'end_date': NOW + end,
                'trust_id': 'trust', 'status': status, 'degraded': False,
                **values,
            },
        )  # fmt: skip
        started, ended, _ = _STATUSES.get(status, _STATUSES['PENDING'])
        self.event(id_, 'start_lease', NOW + start, started)
        self.event(id_, 'end_lease', NOW + end, ended)
        self.event(id_, 'before_end_lease', NOW + end - HOUR, ended)
        return id_

    def event(self, lease_id, event_type, time, status='UNDONE'):
        return self.add(
            'events', lease_id=lease_id, event_type=event_type, time=time,
            status=status,
        )  # fmt: skip

    def _reservation(self, lease_id, resource_type, status):
        return self.add(
            'reservations', lease_id=lease_id, resource_type=resource_type,
            status=status, missing_resources=False, resources_changed=False,
        )  # fmt: skip

    def _own(self, table, reservation_id, **values):
        """Add the row with the parameters of a reservation."""
        id_ = self.add(table, reservation_id=reservation_id, **values)
        self.set('reservations', reservation_id, resource_id=id_)
        return id_

    def _hold(self, reservation_id, hosts):
        for host in hosts:
            self.add(
                'computehost_allocations', compute_host_id=host,
                reservation_id=reservation_id,
            )  # fmt: skip

    def hosts(self, lease_id, *hosts, status='pending', **values):
        """Add a reservation of whole hosts."""
        id_ = self._reservation(lease_id, 'physical:host', status)
        self._own(
            'computehost_reservations',
            **{
                'reservation_id': id_, 'count_range': f'1-{len(hosts) or 1}',
                'hypervisor_properties': '', 'resource_properties': '',
                'before_end': 'default', **values,
            },
        )  # fmt: skip
        self._hold(id_, hosts)
        return id_

    def instances(self, lease_id, *slots, status='pending', **values):
        """Add a reservation of instances, with a host for each."""
        id_ = self._reservation(lease_id, 'virtual:instance', status)
        self._instances(id_, slots, values)
        return id_

    def _instances(self, id_, slots, values):
        self._own(
            'instance_reservations',
            **{
                'reservation_id': id_, 'vcpus': 2, 'memory_mb': 512,
                'disk_gb': 1, 'amount': len(slots), 'affinity': None,
                'resource_properties': '', 'flavor_id': id_,
                'aggregate_id': 1, 'server_group_id': None, **values,
            },
        )  # fmt: skip
        self._hold(id_, slots)

    def flavor(self, lease_id, *slots, status='pending', **shown):
        """Add a reservation of instances of a flavor, with a host for each."""
        id_ = self._reservation(lease_id, 'flavor:instance', status)
        flavor = {
            'id': 'm1.small', 'name': 'small', 'vcpus': 2, 'ram': 512,
            'disk': 1, 'swap': '', 'OS-FLV-EXT-DATA:ephemeral': 0,
            'extra_specs': {}, **shown,
        }  # fmt: skip
        kept = {'resource_properties': json.dumps(flavor)}
        self._instances(id_, slots, kept)
        return id_

    def floating_ips(
        self, lease_id, network_id, *ids, status='pending', required=()
    ):
        id_ = self._reservation(lease_id, 'virtual:floatingip', status)
        own = self._own(
            'floatingip_reservations', reservation_id=id_,
            network_id=network_id, amount=len(ids),
        )  # fmt: skip
        for address in required:
            self.add(
                'required_floatingips', address=address,
                floatingip_reservation_id=own,
            )  # fmt: skip
        for floating_ip_id in ids:
            self.add(
                'floatingip_allocations', floatingip_id=floating_ip_id,
                reservation_id=id_,
            )  # fmt: skip
        return id_
