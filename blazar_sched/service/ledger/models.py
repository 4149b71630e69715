# SPDX-License-Identifier: Apache-2.0
"""The ledger's tables.

Ids are strings of 36 characters, times are whole seconds in 64 bits, and
structured values are JSON text, because three database engines differ in
their date and JSON types. SQL comparisons must be exact, so MySQL gets a
binary collation.
"""

import json
import re
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import mysql

Id = sa.String(36)
Name = sa.String(255)
# MySQL's TEXT is limited to 64 kB, which a host's description may exceed.
Text = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


# Printable ASCII, no blanks.
_ID = re.compile('[!-~]{1,36}')
_SURROGATE = re.compile('[\ud800-\udfff]')


def is_id(text: str) -> bool:
    """Return whether `text` has the form of an id.

    A client may send any text as an id, for example text with trailing
    blanks, which MySQL ignores, or with a NUL, which PostgreSQL refuses.
    """
    return _ID.fullmatch(text) is not None


def is_text(text: str) -> bool:
    """Return whether every supported database can store `text`.

    Text with a NUL, which PostgreSQL refuses, or with half of a surrogate
    pair cannot be stored.
    """
    return '\0' not in text and not _SURROGATE.search(text)


# One encoder for all rows: json.dumps would make one for each value.
_encode = json.JSONEncoder(sort_keys=True).encode


class Json(sa.TypeDecorator[Any]):
    """A structured value, stored as text that is equal for equal values."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        return None if value is None else _encode(value)

    def process_result_value(self, value: str | None, dialect: Any) -> Any:
        return None if value is None else json.loads(value)


class Labels(Json):
    """Labels by key; NULL if there are none, as with most rows."""

    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        return super().process_bind_param(value or None, dialect)

    def process_result_value(self, value: str | None, dialect: Any) -> Any:
        return super().process_result_value(value, dialect) or {}


_MYSQL = {'engine': 'InnoDB', 'charset': 'utf8mb4', 'collate': 'utf8mb4_bin'}
OPTIONS: dict[str, Any] = {
    f'{dialect}_{option}': value
    for dialect in ('mysql', 'mariadb')
    for option, value in _MYSQL.items()
}


class Base(orm.DeclarativeBase):
    metadata = sa.MetaData(
        naming_convention={
            'pk': 'pk_%(table_name)s',
            'fk': 'fk_%(table_name)s_%(column_0_name)s',
            'uq': 'uq_%(table_name)s_%(column_0_N_name)s',
            'ix': 'ix_%(table_name)s_%(column_0_N_name)s',
        }
    )
    type_annotation_map = {
        dict[str, Any]: Json,
        dict[str, str]: Labels,
        list[int]: Json,
        list[str]: Json,
        list[dict[str, Any]]: Json,
        list[tuple[str, int, int]]: Json,
        int: sa.BigInteger(),
        str: Name,
    }
    __table_args__: Any = OPTIONS


class Ledger(Base):
    """The single row with the ledger's UUID, revision and commit count.

    The usage was measured up to `measured_at`; the manager `measured_by`
    measures until `measuring_until`.
    """

    __tablename__ = 'ledger'

    id: orm.Mapped[int] = orm.mapped_column(
        sa.Integer, primary_key=True, autoincrement=False
    )
    uuid: orm.Mapped[str] = orm.mapped_column(Id)
    revision: orm.Mapped[int]
    commits: orm.Mapped[int]
    measured_at: orm.Mapped[int | None]
    measured_by: orm.Mapped[str | None] = orm.mapped_column(Id)
    measuring_until: orm.Mapped[int | None]


class Change(Base):
    """A record of a committed revision."""

    __tablename__ = 'ledger_change'

    revision: orm.Mapped[int] = orm.mapped_column(
        primary_key=True, autoincrement=False
    )
    position: orm.Mapped[int] = orm.mapped_column(
        sa.Integer, primary_key=True, autoincrement=False
    )
    kind: orm.Mapped[str]
    key: orm.Mapped[str]
    data: orm.Mapped[dict[str, Any] | None]


class Writer(Base):
    """A writer's number of commits, and the revision of its newest commit."""

    __tablename__ = 'writer'

    id: orm.Mapped[str] = orm.mapped_column(Id, primary_key=True)
    commits: orm.Mapped[int]
    revision: orm.Mapped[int]


class Lease(Base):
    """A lease; `created_at` is -1 if the time is not known.

    The indexes let lists by page, and the queries for leases that are not
    over, cost the same however many leases are over.
    """

    __tablename__ = 'lease'
    __table_args__ = (
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'project_id', 'status'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'status', 'end'),
        # The leases of no series have two NULLs, which differ from each other.
        sa.Index(None, 'series_id', 'occurrence', unique=True),
        OPTIONS,
    )

    id: orm.Mapped[str] = orm.mapped_column(Id, primary_key=True)
    name: orm.Mapped[str]
    project_id: orm.Mapped[str]
    user_id: orm.Mapped[str]
    start: orm.Mapped[int]
    end: orm.Mapped[int]
    status: orm.Mapped[str]
    degraded: orm.Mapped[bool]
    trust_id: orm.Mapped[str | None]
    series_id: orm.Mapped[str | None] = orm.mapped_column(Id)
    occurrence: orm.Mapped[str | None]
    labels: orm.Mapped[dict[str, str] | None]
    created_at: orm.Mapped[int]
    updated_at: orm.Mapped[int | None]
    changes: orm.Mapped[int] = orm.mapped_column(server_default='0')
    needs_approval: orm.Mapped[str | None] = orm.mapped_column(Text)
    approved_by: orm.Mapped[str | None]


class IdempotencyKey(Base):
    """An idempotency key of a client, with the digest of its request.

    A key whose lease was deleted has no `lease_id`, and is kept for a while: a
    copy of the request may still be on its way to a manager.
    """

    __tablename__ = 'idempotency_key'

    project_id: orm.Mapped[str] = orm.mapped_column(primary_key=True)
    key: orm.Mapped[str] = orm.mapped_column(primary_key=True)
    lease_id: orm.Mapped[str | None] = orm.mapped_column(
        sa.ForeignKey('lease.id'), index=True
    )
    digest: orm.Mapped[str]
    created_at: orm.Mapped[int]


class ShelvedServer(Base):
    """A server that was shelved to vacate its host, to be unshelved later."""

    __tablename__ = 'shelved_server'

    uuid: orm.Mapped[str] = orm.mapped_column(Id, primary_key=True)


class DiscardedTrust(Base):
    """The trust of a lease that is over, still to be deleted in Keystone."""

    __tablename__ = 'discarded_trust'

    id: orm.Mapped[str] = orm.mapped_column(primary_key=True)


class Reservation(Base):
    """A reservation, with its `position` among the lease's reservations."""

    __tablename__ = 'reservation'
    __table_args__ = (
        sa.Index(None, 'status', 'id'),
        OPTIONS,
    )

    id: orm.Mapped[str] = orm.mapped_column(Id, primary_key=True)
    lease_id: orm.Mapped[str] = orm.mapped_column(
        sa.ForeignKey('lease.id'), index=True
    )
    position: orm.Mapped[int] = orm.mapped_column(sa.Integer)
    resource_type: orm.Mapped[str]
    status: orm.Mapped[str]
    parameters: orm.Mapped[dict[str, Any]]
    missing_resources: orm.Mapped[bool]
    resources_changed: orm.Mapped[bool]
    projects: orm.Mapped[list[str]]
    on_end: orm.Mapped[str]
    magnetic: orm.Mapped[bool]
    labels: orm.Mapped[dict[str, str] | None]
    product: orm.Mapped[str | None] = orm.mapped_column(Name, index=True)
    made: orm.Mapped[dict[str, Any]]
    created_at: orm.Mapped[int | None]
    updated_at: orm.Mapped[int | None]


class Event(Base):
    """An event; `owner`, `token` and `until` belong to its claim."""

    __tablename__ = 'event'
    __table_args__ = (
        sa.Index(None, 'status', 'time'),
        OPTIONS,
    )

    id: orm.Mapped[str] = orm.mapped_column(Id, primary_key=True)
    lease_id: orm.Mapped[str] = orm.mapped_column(
        sa.ForeignKey('lease.id'), index=True
    )
    position: orm.Mapped[int] = orm.mapped_column(sa.Integer)
    event_type: orm.Mapped[str]
    time: orm.Mapped[int]
    status: orm.Mapped[str]
    owner: orm.Mapped[str | None]
    token: orm.Mapped[str | None] = orm.mapped_column(Id)
    until: orm.Mapped[int | None]
    created_at: orm.Mapped[int | None]
    updated_at: orm.Mapped[int | None]


class Host(Base):
    """A host whose `id` is never reused, so no client meets another host."""

    __tablename__ = 'host'
    __table_args__ = {**OPTIONS, 'sqlite_autoincrement': True}

    id: orm.Mapped[int] = orm.mapped_column(sa.Integer, primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(Id, unique=True)
    hypervisor_hostname: orm.Mapped[str]
    service_name: orm.Mapped[str]
    hypervisor_type: orm.Mapped[str]
    hypervisor_version: orm.Mapped[int]
    cpu_info: orm.Mapped[str] = orm.mapped_column(Text)
    availability_zone: orm.Mapped[str]
    inventory: orm.Mapped[dict[str, Any]]
    hold: orm.Mapped[str]
    movable: orm.Mapped[str]
    unbounded: orm.Mapped[str | None]
    cleaning_time: orm.Mapped[int | None]
    reservable: orm.Mapped[bool]
    disabled: orm.Mapped[bool]
    spare: orm.Mapped[bool]
    projects: orm.Mapped[list[str]]
    region: orm.Mapped[str]
    traits: orm.Mapped[list[str]]
    providers: orm.Mapped[list[dict[str, Any]]]
    capabilities: orm.Mapped[dict[str, Any]]
    available_from: orm.Mapped[int | None]
    available_until: orm.Mapped[int | None]
    # The windows in which a part has closed the host.
    maintenances: orm.Mapped[list[dict[str, Any]]]
    created_at: orm.Mapped[int | None]
    updated_at: orm.Mapped[int | None]


class HostProperty(Base):
    """The visibility of a capability, by name, to ordinary users."""

    __tablename__ = 'host_property'

    name: orm.Mapped[str] = orm.mapped_column(primary_key=True)
    private: orm.Mapped[bool]


class Allocation(Base):
    """An allocation, with its own window and amounts.

    The copies of window and amounts let a replica load in one scan.
    """

    __tablename__ = 'allocation'
    __table_args__ = (
        sa.UniqueConstraint('reservation_id', 'host'),
        sa.Index(None, 'host', 'end'),
        OPTIONS,
    )

    id: orm.Mapped[str] = orm.mapped_column(Id, primary_key=True)
    reservation_id: orm.Mapped[str] = orm.mapped_column(
        sa.ForeignKey('reservation.id')
    )
    host: orm.Mapped[str] = orm.mapped_column(sa.ForeignKey('host.uuid'))
    start: orm.Mapped[int]
    end: orm.Mapped[int] = orm.mapped_column(index=True)
    amounts: orm.Mapped[dict[str, Any]]
    whole: orm.Mapped[bool]


class PastAllocation(Base):
    """What an allocation was until its end, kept as long as its lease.

    The host may be gone since. No replica has these rows.
    """

    __tablename__ = 'past_allocation'
    __table_args__ = (sa.Index(None, 'host', 'end'), OPTIONS)

    id: orm.Mapped[str] = orm.mapped_column(Id, primary_key=True)
    reservation_id: orm.Mapped[str] = orm.mapped_column(
        sa.ForeignKey('reservation.id'), index=True
    )
    host: orm.Mapped[str] = orm.mapped_column(Id)
    start: orm.Mapped[int]
    end: orm.Mapped[int]
    amounts: orm.Mapped[dict[str, Any]]
    whole: orm.Mapped[bool]


class Instance(Base):
    __tablename__ = 'instance'

    uuid: orm.Mapped[str] = orm.mapped_column(Id, primary_key=True)
    host: orm.Mapped[str] = orm.mapped_column(
        sa.ForeignKey('host.uuid'), index=True
    )
    project_id: orm.Mapped[str]
    amounts: orm.Mapped[dict[str, Any]]
    end: orm.Mapped[int]
    reservation_id: orm.Mapped[str | None] = orm.mapped_column(
        sa.ForeignKey('reservation.id'), index=True
    )
    preemptible: orm.Mapped[bool]
    claim: orm.Mapped[str | None] = orm.mapped_column(Id, index=True)
    used: orm.Mapped[dict[str, Any] | None]
    # Host, start and end of each stay.
    path: orm.Mapped[list[tuple[str, int, int]] | None]
    movable: orm.Mapped[str]
    building: orm.Mapped[bool]


class Flavor(Base):
    """A copy of a Nova flavor, so that leases are placed without Nova.

    `projects` is None for a public flavor.
    """

    __tablename__ = 'flavor'

    id: orm.Mapped[str] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str]
    vcpus: orm.Mapped[int]
    memory_mb: orm.Mapped[int]
    disk_gb: orm.Mapped[int]
    ephemeral_gb: orm.Mapped[int]
    swap_mb: orm.Mapped[int]
    extra_specs: orm.Mapped[dict[str, Any]]
    projects: orm.Mapped[list[str] | None]
