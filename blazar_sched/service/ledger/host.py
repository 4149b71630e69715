# SPDX-License-Identifier: Apache-2.0
"""Hosts in SQL."""

from collections.abc import Collection
import dataclasses
import functools
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain import fields
from blazar_sched.domain import inventory
from blazar_sched.domain import provider
from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.replica import record
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import models

# The number of digits that fits the integer column of every database.
_DIGITS = 9


def from_row(row: Any) -> Host:
    return Host(
        uuid=row.uuid, id=str(row.id),
        hypervisor_hostname=row.hypervisor_hostname,
        service_name=row.service_name, hypervisor_type=row.hypervisor_type,
        hypervisor_version=row.hypervisor_version, cpu_info=row.cpu_info,
        availability_zone=row.availability_zone,
        inventory={
            resource_class: fields.build(Inventory, figures)
            for resource_class, figures in row.inventory.items()
        },
        hold=row.hold, unbounded=row.unbounded,
        cleaning_time=row.cleaning_time, reservable=row.reservable,
        disabled=row.disabled, spare=row.spare, projects=tuple(row.projects),
        region=row.region, movable=row.movable, traits=tuple(row.traits),
        providers=provider.decode(row.providers),
        capabilities=row.capabilities, available_from=row.available_from,
        available_until=row.available_until,
        maintenances=tuple(
            fields.build(ClosedWindow, each) for each in row.maintenances
        ),
        created_at=row.created_at, updated_at=row.updated_at,
    )


def get(connection: sa.Connection, host_id: str) -> Host:
    """Return a host by its id in the API or by its UUID.

    :raises HostNotFound: if there is no such host
    """
    for found in _select(connection, _named(host_id)):
        # The comparison refuses host 7 when the given id is 007.
        if host_id in (found.id, found.uuid):
            return found
    raise exception.HostNotFound(f'host {host_id} not found')


def _named(host_id: str) -> sa.ColumnElement[bool]:
    if not models.is_id(host_id):
        return sa.false()
    if host_id.isdecimal() and len(host_id) <= _DIGITS:
        return models.Host.id == int(host_id)
    return models.Host.uuid == host_id


def list_(
    connection: sa.Connection, uuids: Collection[str] | None = None,
    after: str | None = None, limit: int | None = None,
) -> list[Host]:
    """Return all hosts, or the existing hosts among `uuids`.

    The hosts are sorted by id, so the host registered first comes first.

    :param after: the id of the host after which the result begins; the host
        need not exist
    :param limit: the maximum number of hosts
    """
    asked = {'uuids': uuids, 'after': after, 'limit': limit}
    given = {name: value for name, value in asked.items() if value is not None}
    if after is not None:
        given['after'] = int(after)
    return [from_row(row) for row in connection.execute(_query(*given), given)]


@functools.cache
def _query(*given: str) -> sa.Executable:
    """Return the query of `list_` for the conditions that are given."""
    uuids: sa.BindParameter[str] = sa.bindparam('uuids', expanding=True)
    conditions = {
        'uuids': models.Host.uuid.in_(uuids),
        'after': models.Host.id > sa.bindparam('after'),
    }
    wanted = (conditions[name] for name in given if name != 'limit')
    query = sa.select(models.Host).where(*wanted).order_by(models.Host.id)
    return query.limit(sa.bindparam('limit')) if 'limit' in given else query


def capacities(connection: sa.Connection) -> dict[str, tuple[int, int]]:
    """Return what all reservable hosts have, and what the largest one has.

    :returns: the VCPUs and the MB of memory, by resource class
    """
    query = sa.select(models.Host.inventory).where(models.Host.reservable)
    found: dict[str, list[int]] = {inventory.VCPU: [], inventory.MEMORY_MB: []}
    for held in connection.scalars(query):
        for name in found.keys() & held.keys():
            found[name].append(fields.build(Inventory, held[name]).capacity)
    return {
        name: (sum(each), max(each, default=0)) for name, each in found.items()
    }


def _row(host: Host) -> dict[str, Any]:
    return {
        **dataclasses.asdict(host),
        'inventory': {
            resource_class: inventory.encode(held)
            for resource_class, held in host.inventory.items()
        },
    }


def put(
    connection: sa.Connection, new: Host
) -> tuple[Host, list[record.Record]]:
    """Insert a host that has no id, else update the host by its UUID.

    :raises HostExists: if a host to be inserted exists
    :raises HostNotFound: if a host to be updated does not exist
    """
    row = _row(new)
    del row['id']
    found = _select(connection, models.Host.uuid == new.uuid)
    if not new.id:
        if found:
            raise exception.HostExists(
                f'host {new.uuid} is already registered'
            )
        connection.execute(sa.insert(models.Host).values(row))
        # The host is read back with the id that the database assigned.
        (new,) = _select(connection, models.Host.uuid == new.uuid)
        return new, [record.encode(new)]
    if not found or found[0].id != new.id:
        raise exception.HostNotFound(f'host {new.id} not found')
    if found[0] == new:
        return new, []
    connection.execute(
        sa.update(models.Host).where(models.Host.uuid == new.uuid).values(row)
    )
    return new, [record.encode(new)]


def add(connection: sa.Connection, new: Host) -> list[record.Record]:
    """Insert a host with an id from another system.

    All hosts that have an id must be inserted before hosts without one.
    """
    row = {**_row(new), 'id': int(new.id)}
    connection.execute(sa.insert(models.Host).values(row))
    if connection.dialect.name == 'postgresql':
        # PostgreSQL alone would otherwise assign the same id again.
        sequence = sa.func.pg_get_serial_sequence('host', 'id')
        highest = sa.select(sa.func.max(models.Host.id)).scalar_subquery()
        connection.execute(sa.select(sa.func.setval(sequence, highest)))
    return [record.encode(new)]


def delete(connection: sa.Connection, uuid: str) -> list[record.Record]:
    """Delete a host with its allocations and instances, and paths to it.

    :raises HostNotFound: if there is no such host
    """
    records = allocation.drop(connection, models.Allocation.host == uuid)
    records += instance.drop(connection, models.Instance.host == uuid)
    records += instance.drop_paths(connection, uuid)
    changed = connection.execute(
        sa.delete(models.Host).where(models.Host.uuid == uuid)
    )
    if changed.rowcount != 1:
        raise exception.HostNotFound(f'host {uuid} not found')
    return [*records, (record.HOST, uuid, None)]


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[Host]:
    query = sa.select(models.Host).where(condition)
    return [from_row(row) for row in connection.execute(query)]


def properties(connection: sa.Connection) -> dict[str, bool]:
    """Return, by property name, whether the property is private."""
    found = connection.execute(sa.select(models.HostProperty))
    return {row.name: row.private for row in found}


def put_property(connection: sa.Connection, name: str, private: bool) -> None:
    """Insert or update a property."""
    if name not in properties(connection):
        connection.execute(
            sa.insert(models.HostProperty).values(name=name, private=private)
        )
    else:
        connection.execute(
            sa.update(models.HostProperty)
            .where(models.HostProperty.name == name)
            .values(private=private)
        )
