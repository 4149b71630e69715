# SPDX-License-Identifier: Apache-2.0
"""The resources of the service, and the methods that all nouns have.

Made by ``client/generate.py`` from the OpenAPI document of the service.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from blazar_sched_client import _base
from blazar_sched_client._base import body
from blazar_sched_client._base import header
from blazar_sched_client._base import Resource
from blazar_sched_client._base import uri


class Allocation(Resource):
    """The allocations of a host."""
    resources_key, resource_key = 'allocations', 'allocation'
    base_path = '/os-hosts/%(host_id)s/allocation'
    allow_list = allow_fetch = allow_commit = True
    requires_id = False
    _query = {
        'lease_id': body(
            'Only allocations of this lease, past allocations too'),
        'reservation_id': body(
            'Only allocations of this reservation, past allocations too'),
    }

    host_id: str = uri('host_id')
    resource_id: str = body('ID of the host', alternate_id=True)
    reservations: list[dict[str, Any]] = body(
        'Reservations that have allocations on the host', list)
    lease_id: str = body('ID of the lease that is moved from the host, in '
                         'place of `reservation_id`')
    reservation_id: str = body('ID of the reservation that is moved from the '
                               'host, in place of `lease_id`')


class Calendar(Resource):
    """A link at which programs read the leases of a project."""
    resources_key, resource_key = 'calendars', 'calendar'
    base_path = '/calendars'
    allow_list = allow_create = allow_fetch = allow_delete = True
    _noun, _nouns = 'calendar', 'calendars'
    _columns = ('id', 'name', 'created_at')
    _created = ('name',)

    project_id: str = body('ID of the project')
    url: str | None = body('Link at which anyone reads the calendar without a '
                           'token, in the response to the creation only')
    created_at: str = body('Time of creation')


class Capacity(Resource):
    """The capacity of hosts over a window."""
    resource_key = 'capacity'
    base_path = '/capacity'
    allow_fetch = True
    _query = {
        'start_date': body('Start of the window, now if absent', form='time'),
        'end_date': body(
            'End of the window, a day after the start if absent', form='time'),
        'parts': body('Number of parts of the window, as equal as whole '
                      'seconds allow', int),
        'resource_properties': body('Requirement that the hosts must meet'),
        'flavor_id': body(
            'ID of a flavor: its instances are counted too, and only hosts '
            'that meet the requirements of the flavor are considered'),
    }

    start_date: str = body('Start of the window')
    end_date: str = body('End of the window')
    hosts: int = body('Number of hosts that match the request and that the '
                      'project may use', int)
    parts: list[dict[str, Any]] = body('Consecutive parts of the window', list)


class Extension(Resource):
    """How far a lease can be prolonged; nothing is reserved."""
    resource_key = 'extension'
    base_path = '/leases/%(lease_id)s/extension'
    allow_fetch = True

    lease_id: str = uri('lease_id')
    end_date: str | None = body('Latest end with which an update would be '
                                'accepted now, at most the requested end')
    limited_by: str | None = body(
        'Why a later end would be refused: `capacity` if resources are '
        'lacking, `policy` if a limit of the project forbids it')
    reservation: int | None = body(
        'Position in the lease, from 0, of the reservation for which there is '
        'no room until a later end')
    available: int | None = body('Number of hosts or instances for which '
                                 'there is room until a later end')
    searched_until: str | None = body(
        'End at which the search was given up because it took too long')


class Flavor(Resource):
    """A flavor of Nova that a reservation can name."""
    resources_key = 'flavors'
    base_path = '/flavors'
    allow_list = True
    _noun, _nouns = 'flavor', 'flavors'
    _columns = (
        'id', 'name', 'vcpus', 'memory_mb', 'disk_gb', 'ephemeral_gb',
        'swap_mb',
    )

    vcpus: int = body('Number of vCPUs', int)
    memory_mb: int = body('Memory in MB', int)
    disk_gb: int = body('Size of the root disk in GB', int)
    ephemeral_gb: int = body('Size of the ephemeral disk in GB', int)
    swap_mb: int = body('Size of the swap disk in MB', int)


class FloatingIP(Resource):
    """A floating IP registered as reservable."""
    resources_key, resource_key = 'floatingips', 'floatingip'
    base_path = '/floatingips'
    allow_list = allow_create = allow_fetch = allow_delete = True
    _noun, _nouns = 'floating_ip', 'floating_ips'

    name: str = body('IPv4 or IPv6 address', name='floating_ip_address')
    floating_network_id: str = body('ID of the external network')
    subnet_id: str = body('ID of the subnet')
    floating_ip_address: str = body('IPv4 or IPv6 address')
    reservable: bool = body('Whether the resource can be reserved', bool)
    created_at: str | None = body('Time of creation')
    updated_at: str | None = body('Time of the last change')


class Host(Resource):
    """A compute host registered as reservable."""
    resources_key, resource_key = 'hosts', 'host'
    base_path = '/os-hosts'
    allow_list = allow_create = allow_fetch = allow_commit = True
    allow_delete = True
    _store_unknown_attrs_as_properties = True
    _noun, _nouns = 'host', 'hosts'

    name: str = body(
        'Hypervisor hostname in Nova', alias='hypervisor_hostname')
    properties: dict[str, Any] = body('Value of the capability of this name')
    hypervisor_hostname: str = body('Hypervisor hostname in Nova')
    hypervisor_type: str = body('Hypervisor type in Nova')
    hypervisor_version: int = body('Hypervisor version in Nova', int)
    vcpus: int = body('VCPUs in Placement', int)
    cpu_info: str = body('CPU information from Nova')
    memory_mb: int = body('Memory in Placement, in MB', int)
    local_gb: int = body('Disk in Placement, in GB', int)
    availability_zone: str = body('Availability zone in Nova')
    service_name: str = body('Name of the nova-compute service')
    status: None = body('Always None')
    reservable: bool = body('Whether the resource can be reserved', bool)
    trust_id: None = body('Always None')
    created_at: str | None = body('Time of creation')
    updated_at: str | None = body('Time of the last change')
    hold: str = body(
        'Whether ordinary servers may use the host until a reservation needs '
        'it (`shared`), or not at all (`dedicated`)')
    unbounded: str | None = body('Policy of the host for servers that declare '
                                 'no end; None means the policy of the cloud')
    disabled: bool = body('Whether the host gets no new allocations')
    projects: list[str] = body(
        'IDs of the projects whose reservations can use the host')
    region: str = body('Region of the host')
    traits: list[str] = body('Traits of the host in Placement', list)
    cleaning_time: int | None = body(
        'Minutes that reservations keep between themselves and any other '
        'known use of the host; None means the cleaning time of the cloud')
    available_from: str | None = body(
        'Time before which nothing may be on the host, such as a host that is '
        'still to be delivered')
    available_until: str | None = body(
        'Time from which on nothing may be on the host, such as a host that '
        'will be taken away')
    spare: bool = body('Whether the host is kept for leases that lose a host: '
                       'no other lease gets it')


class Lease(_base.Waited):
    """A project's contract over one window."""
    resources_key, resource_key = 'leases', 'lease'
    base_path = '/leases'
    allow_list = allow_create = allow_fetch = allow_commit = True
    allow_delete = True
    _noun, _nouns = 'lease', 'leases'
    _columns = ('id', 'name', 'start_date', 'end_date', 'status', 'degraded')
    _hidden = (
        'duration', 'before_end_date', 'as_far_as_possible',
        'latest_start_date', 'align', 'alternatives', 'offer',
    )
    _created = (
        'name', 'start_date', 'end_date', 'duration', 'latest_start_date',
        'align', 'before_end_date', 'labels', 'reservations', 'alternatives',
        'events', 'offer', 'dry_run', 'idempotency_key',
    )
    _changed = (
        'name', 'labels', 'start_date', 'end_date', 'duration',
        'before_end_date', 'reservations', 'as_far_as_possible', 'dry_run',
    )
    _paginated = True
    _query = {
        'name': body('Only leases of this name'),
        'status': body('Only leases in this status'),
        'project_id': body('Only leases of this project'),
        'active_at': body('Only leases whose window has this time, which may '
                          'be `now`', form='time'),
        'start_date': body(
            'Only leases that end after this time', form='time'),
        'end_date': body(
            'Only leases that start before this time', form='time'),
        'resource_type': body('Only leases with a reservation of this type'),
        'host': body('Only leases that have or had the host of this '
                     'hypervisor hostname'),
        'degraded': body(
            'Only leases that are degraded, or that are not', bool),
        'label': body('Only leases that have this label themselves or on a '
                      'reservation, as in `team:vision`'),
        'sort': body('Sort keys by precedence, each with its direction: '
                     '`name:asc,end:desc`'),
        'fields': body('Fields of each item that are shown: `id,name`'),
    }

    user_id: str = body('ID of the user who created the lease')
    project_id: str = body('ID of the project that owns the lease')
    start_date: str = body('Start of the window; None means now', form='time')
    end_date: str | None = body(
        'End of the window; None means no end', form='time')
    trust_id: str | None = body(
        'ID of the Keystone trust with which the service acts for the user')
    status: str = body('Status of the lease')
    degraded: bool = body(
        'Whether resources of the lease are missing or occupied', bool)
    series_id: str | None = body('ID of the series')
    occurrence: str | None = body('Local start of the occurrence of a series')
    labels: dict[str, str] = body(
        'Texts by key, by which the lease or the reservation is found', dict)
    approved_by: str | None = body(
        'ID of the user who has approved the held offer that the lease was')
    alternative: int | None = body(
        'Position of the reservations that are booked: 0 for `reservations`, '
        'then those of `alternatives`')
    reservations: list[dict[str, Any]] = body(
        'Reservations of the lease', list)
    events: list[dict[str, Any]] = body('Events of the lease', list)
    created_at: str | None = body('Time of creation')
    updated_at: str | None = body('Time of the last change')
    duration: str | int = body(
        'Length of the lease, in place of `end_date`', form='duration')
    before_end_date: str | None = body(
        'Time of the `before_end_lease` event; None means the time that the '
        'operator has configured', form='time')
    as_far_as_possible: bool = body(
        'Whether the lease is to end as late as possible, at `end_date` at '
        'the latest', bool)
    latest_start_date: str = body(
        'Last start: the lease begins at the first start, from `start_date` '
        'on, that has room', form='time')
    align: str = body(
        'Starts that may be chosen: a duration for its multiples in UTC, as '
        '`1h`, or a time of day with a time zone, as `09:00 Europe/Berlin`')
    alternatives: list[list[dict[str, Any]]] = body(
        'Lists of reservations, each of which would do instead', list)
    offer: str = body('Id of a held offer, which becomes the lease, in place '
                      'of the dates and the reservations')
    idempotency_key: str = header('Idempotency-Key')


class LeaseRequest(Resource):
    """A lease that waits for room, with the start that it may expect."""
    resources_key, resource_key = 'requests', 'request'
    base_path = '/requests'
    allow_list = allow_create = allow_fetch = allow_delete = True
    _noun, _nouns = 'lease_request', 'lease_requests'
    _columns = ('id', 'name', 'status', 'position', 'priority', 'lease_id')
    _hidden = ('reservations',)
    _created = (
        'name', 'reservations', 'duration', 'start_date', 'latest_start_date',
        'wait_until', 'priority', 'flexible', 'idempotency_key',
    )

    project_id: str = body('ID of the project that waits')
    user_id: str = body('ID of the user who created the request')
    start_date: str = body(
        'First start of the lease, now if absent', form='time')
    latest_start_date: str = body('Last start of the lease', form='time')
    duration: str | int = body('Length of the lease', form='duration')
    wait_until: str = body(
        'Time until which the lease request waits, at most until '
        '`latest_start_date`, `latest_start_date` if absent', form='time')
    priority: str = body('Priority among the lease requests that wait',
                         choices=('low', 'normal', 'high'))
    flexible: bool = body(
        'Whether the lease may be moved in the range of its starts, until it '
        'starts, to make room for a lease request of a higher priority', bool)
    status: str = body('Status of the lease request: `BOOKED` has a lease, '
                       '`LAPSED` has waited until `wait_until` in vain')
    position: int | None = body(
        'Position among the waiting lease requests of all projects, from 1')
    lease_id: str | None = body('ID of the lease')
    created_at: str | None = body('Time of creation')
    updated_at: str | None = body('Time of the last change')
    estimate: str | None = body(
        'First start with room as of now that delays no lease request ahead, '
        'also if it is after `latest_start_date`')
    reservations: list[dict[str, Any]] = body(
        'Reservations of the lease', list)
    idempotency_key: str = header('Idempotency-Key')


class Limit(Resource):
    """A limit of a project."""
    resources_key = 'limits'
    base_path = '/limits'
    allow_list = True
    _noun, _nouns = 'limit', 'limits'
    _columns = ('name', 'unit', 'limit', 'used')
    _query = {
        'project_id': body(
            'ID of the project, by default the project of the caller'),
    }

    unit: str = body(
        'What is counted: `leases`, `hosts`, `instances`, `seconds`, '
        '`weight`, `weight x hours`, `offers`, `series`, `requests`, '
        '`webhooks` or `calendars`, or a resource class')
    limit: int = body('Largest number that is allowed, -1 for any', int)
    used: float | None = body(
        'Number that counts for the next one of the project')


class Maintenance(Resource):
    """A window in which nothing may be on some hosts."""
    resources_key, resource_key = 'maintenances', 'maintenance'
    base_path = '/maintenances'
    allow_list = allow_create = allow_fetch = allow_commit = True
    allow_delete = True
    _noun, _nouns = 'maintenance', 'maintenances'
    _columns = ('id', 'name', 'status', 'start_date', 'end_date', 'hosts')
    _hidden = ('force', 'resource_properties')
    _created = (
        'name', 'reason', 'start_date', 'end_date', 'hosts',
        'resource_properties', 'force', 'dry_run',
    )
    _changed = ('name', 'reason', 'start_date', 'end_date', 'force', 'dry_run')

    reason: str = body(
        'Reason, which the owners of leases on the hosts are told')
    start_date: str = body('Start of the window; None means now', form='time')
    end_date: str | None = body(
        'End of the window; None means not known yet', form='time')
    status: str = body('Status of the maintenance: hosts are vacated from '
                       '`DRAINING` on, and closed while it is `ACTIVE`')
    hosts: list[str] = body('Hypervisor hostnames of the hosts', list)
    created_at: str | None = body('Time of creation')
    updated_at: str | None = body('Time of the last change')
    moved: list[dict[str, Any]] | None = body(
        'Reservations that have left hosts, in the response to a change', list)
    in_the_way: list[dict[str, Any]] = body(
        'Reservations that have allocations on the hosts in the window', list)
    servers: int = body(
        'Number of servers on the hosts that do not end before the start', int)
    force: bool = body(
        'Whether to go on although reservations cannot leave the hosts', bool)
    resource_properties: str = body(
        'Requirement that the hosts meet at this time, in place of `hosts`, '
        'as `["==", "$rack", "7"]`')


class Offer(Resource):
    """A window whose room is held for a project."""
    resources_key, resource_key = 'offers', 'offer'
    base_path = '/offers'
    allow_list = allow_fetch = allow_commit = allow_delete = True
    _noun, _nouns = 'offer', 'offers'
    _columns = (
        'id', 'start_date', 'end_date', 'held_until', 'needs_approval',
        'approved_by', 'reservations',
    )
    _hidden = ('alternative', 'limited_by', 'approved', 'hold')
    _changed = ('approved', 'hold')

    start_date: str = body('Start of the window')
    end_date: str = body('End of the window')
    held_until: str | None = body('Time at which the offer lapses, unless it '
                                  'was accepted or deleted before')
    project_id: str = body('ID of the project for which the offer is held')
    needs_approval: str | None = body(
        'The limits that forbid the lease, and that an administrator can lift '
        'by approving the held offer')
    approved_by: str | None = body(
        'ID of the user who has approved the offer, by which the limits in '
        '`needs_approval` are lifted')
    reservations: list[dict[str, Any]] = body(
        'The reservations, in the order of the request', list)
    alternative: int = body(
        'Position of the reservations that have room: 0 for `reservations`, '
        'then those of `alternatives`', int)
    limited_by: str | None = body(
        '`policy` if a limit of the project forbids the lease')
    approved: bool = body('Whether the offer can be accepted although limits '
                          'forbid the lease', bool)
    hold: str | int = body(
        'How long the offer is held from now on', form='duration')


class Offers(Resource):
    """Windows in which a lease would find room."""
    base_path = '/offers'
    allow_create = True
    _created = (
        'reservations', 'alternatives', 'duration', 'max_duration',
        'start_date', 'latest_start_date', 'latest_end_date', 'align', 'best',
        'limit', 'distance', 'hold',
    )

    offers: list[Offer] = body(
        'Windows with room, the best first', list, list_type=Offer)
    searched_until: str | None = body('Start at which the search was given up')
    nearest: dict[str, Any] | None = body(
        'What there is room for at the first start, if there is no offer',
        dict)
    reservations: list[dict[str, Any]] = body(
        'Reservations of the lease', list)
    alternatives: list[list[dict[str, Any]]] = body(
        'Lists of reservations, each of which would do instead', list)
    duration: str | int = body('Least length of the lease', form='duration')
    max_duration: str | int = body(
        'Greatest length of the lease, `duration` if absent: each offer is as '
        'long as there is room', form='duration')
    start_date: str = body('First start, now if absent', form='time')
    latest_start_date: str = body(
        'Last start, 90 days after the first if absent', form='time')
    latest_end_date: str = body('Last end, any end if absent', form='time')
    align: str = body(
        'Starts that may be chosen: a duration for its multiples in UTC, as '
        '`1h`, or a time of day with a time zone, as `09:00 Europe/Berlin`')
    best: str = body('Order of the offers: by start, by length, or by the '
                     'number of hosts in a lease of the least length',
                     choices=('earliest', 'longest', 'most'))
    limit: int = body('Most offers to return', int)
    distance: str | int = body(
        'Least time between the starts of two offers for the same '
        'reservations, 1h if absent', form='duration')
    hold: str | int = body(
        'How long the first offer is held for the project', form='duration')


class Product(Resource):
    """What the operator publishes for reservations."""
    resources_key = 'products'
    base_path = '/products'
    allow_list = True
    _noun, _nouns = 'product', 'products'
    _columns = (
        'name', 'description', 'resource_type', 'max_duration', 'max_units',
        'free',
    )
    _query = {
        'start_date': body('Start of the window, now if absent', form='time'),
        'end_date': body(
            'End of the window, a day after the start if absent', form='time'),
    }

    description: str = body('Description')
    resource_type: str = body('Resource type of the reservation')
    vcpus: int | None = body('VCPUs of each instance, None for another size')
    memory_mb: int | None = body('Memory of each instance in MB, likewise')
    disk_gb: int | None = body('Disk of each instance in GB, likewise')
    flavor_id: str | None = body(
        'ID of the flavor of each instance, None for none')
    max_duration: int | None = body('Longest lease in seconds, None for any')
    max_units: int | None = body(
        'Largest number of hosts or instances that all projects may have at '
        'the same time, None for any')
    free: int = body('Number of hosts or instances that are free throughout '
                     'the window', int)


class Property(Resource):
    """A capability of hosts that a requirement can name."""
    resources_key, resource_key = 'resource_properties', 'resource_property'
    base_path = '/os-hosts/properties'
    allow_list = allow_commit = True
    commit_method = 'PATCH'
    _noun, _nouns = 'property', 'properties'
    _query = {
        'detail': body('Whether to show the values of each property', bool),
        'all': body('Whether to list private properties too, for '
                    'administrators only', bool),
    }

    name: str = body(
        'Name of the property', name='property', alternate_id=True)
    property_name: str | None = body('Name of the property')
    resource_type: str | None = body('`physical:host`')
    private: bool | None = body(
        'Whether the property is listed with `all` only, and only an '
        'administrator can require it')
    property_values: list[str] | None = body(
        'Values of the property on hosts', list, name='values')


class PublicProperties(Resource):
    """The zones and the properties of hosts that a project may use."""
    base_path = '/properties'
    allow_fetch = True

    zones: list[str] = body('Availability zones of the hosts', list)
    properties: list[dict[str, Any]] = body(
        'Properties that a requirement can name', list)
    properties_left_out: int = body(
        'Number of properties that are not shown', int)


class Series(Resource):
    """Leases that recur, with the leases that are booked."""
    resources_key, resource_key = 'series', 'series'
    base_path = '/series'
    allow_list = allow_create = allow_fetch = allow_commit = True
    allow_delete = True
    _noun, _nouns = 'series', 'series'
    _columns = ('id', 'name', 'rrule', 'start', 'time_zone', 'booked_until')
    _hidden = ('reservations', 'change_from')
    _created = (
        'name', 'rrule', 'time_zone', 'start', 'duration', 'reservations',
        'except_dates', 'if_no_room', 'dry_run', 'idempotency_key',
    )
    _changed = (
        'name', 'rrule', 'time_zone', 'start', 'duration', 'reservations',
        'except_dates', 'if_no_room', 'change_from', 'dry_run',
    )

    project_id: str = body('ID of the project that owns the series')
    user_id: str = body('ID of the user who created the series')
    rrule: str = body('Rule of RFC 5545 for the starts, as '
                      '`FREQ=WEEKLY;BYDAY=MO,WE;COUNT=24`, in local time')
    time_zone: str = body('Time zone of the rule, as `Europe/Berlin`')
    start: str = body('First start, in local time, as `2030-01-07T09:00`')
    duration: str | int = body('Length of each lease', form='duration')
    except_dates: list[str] = body('Dates, or local starts, of occurrences to '
                                   'leave out', list, name='except')
    if_no_room: str = body(
        'What is done if an occurrence has no room when the series is '
        'created: `refuse` refuses the request, `skip` leaves the occurrence '
        'out', choices=('refuse', 'skip'))
    booked_until: str | None = body(
        'Start of the first occurrence that is still to be booked')
    created_at: str | None = body('Time of creation')
    updated_at: str | None = body('Time of the last change')
    leases: list[dict[str, Any]] = body(
        'Occurrences that are booked, and that are to be booked as soon as '
        'there is room', list)
    reservations: list[dict[str, Any]] = body(
        'Reservations of each lease', list)
    change_from: str = body(
        'Local date or time of the first occurrence that changes; the next '
        'occurrence if left out', name='from')
    idempotency_key: str = header('Idempotency-Key')


class Timeline(Resource):
    """What takes the hosts in a window."""
    resource_key = 'timeline'
    base_path = '/timeline'
    allow_fetch = True
    _query = {
        'start_date': body(
            'Start of the window, the minute of now if absent', form='time'),
        'end_date': body('End of the window, a week after the start if absent',
                         form='time'),
        'group_by': body('What a row stands for: `host`, `zone`, `flavor`, or '
                         '`$` and the name of a property'),
        'resource_properties': body('Requirement that the hosts must meet'),
        'resource_class': body(
            'Resource class, such as `VCPU` or `CUSTOM_GPU`, of which shares '
            'are shown, on the hosts that have the class'),
        'parts': body('Number of parts of the window for which each row shows '
                      'what is free', int),
    }

    start_date: str = body('Start of the window')
    end_date: str = body('End of the window')
    group_by: str = body('What a row stands for')
    parts: list[dict[str, Any]] = body('Parts of the window', list)
    rows: list[dict[str, Any]] = body('Rows of the page', list)
    marker: str | None = body('`marker` of the next page')


class Usage(Resource):
    """What reservations have reserved and used."""
    resources_key = 'usage'
    base_path = '/reports/usage'
    allow_list = True
    _noun, _nouns = 'usage', 'usage'
    _columns = (
        'project_id', 'lease_id', 'reservation_id', 'resource_type', 'flavor',
        'product', 'day', 'resource_class', 'reserved', 'used', 'idle',
        'no_show', 'late', 'refused',
    )
    _query = {
        'start_date': body('Start of the report, 30 days before the end if '
                           'absent', form='time'),
        'end_date': body('End of the report, now if absent', form='time'),
        'group_by': body(
            'What the sums are grouped by, beside the resource class: some of '
            '`project_id`, `lease_id`, `reservation_id`, `resource_type`, '
            '`flavor`, `product`, `day`, separated by commas'),
        'project_id': body('ID of the project, by default the project of the '
                           'caller, or all projects for an administrator'),
    }

    project_id: str | None = body('ID of the project')
    lease_id: str | None = body('ID of the lease')
    reservation_id: str | None = body('ID of the reservation')
    resource_type: str | None = body('Resource type of the reservation')
    flavor: str | None = body('ID of the flavor, empty for none')
    product: str | None = body('Name of the product, empty for none')
    day: str | None = body('Day in UTC')
    resource_class: str = body(
        'Resource class, or `HOST` for whole hosts, or `FLOATING_IP`')
    reserved: float = body('Amount x hours that were reserved', float)
    used: float = body('Amount x hours that servers used of it', float)
    idle: float = body('Amount x hours that servers did not use', float)
    no_show: float = body('Amount x hours of the reservations that had no '
                          'server in the report', float)
    late: float = body(
        'Hours for which starts of reservations were due and not done', float)
    refused: float = body(
        'Amount x hours of the leases that were refused', float)


class Webhook(Resource):
    """A URL to which the notifications of a project are posted."""
    resources_key, resource_key = 'webhooks', 'webhook'
    base_path = '/webhooks'
    allow_list = allow_create = allow_fetch = allow_delete = True
    _noun, _nouns = 'webhook', 'webhooks'
    _columns = ('id', 'url', 'events', 'failing_since', 'error', 'disabled')
    _created = ('url', 'events')

    project_id: str = body('ID of the project')
    url: str = body('URL to which the notifications are posted, or `mailto:` '
                    'and the e-mail address to which they are sent')
    events: list[str] = body(
        'Types of the notifications, as `lease.degraded`', list)
    secret: str | None = body(
        'Key of the signatures, in the response to the creation only')
    failures: int = body('Number of tries that have failed in a row', int)
    failing_since: str | None = body('Time of the first of these tries')
    error: str | None = body('Why the last try has failed')
    disabled: str | None = body(
        'Why nothing is sent any more: `gone` if the receiver has answered '
        '410, `failing` if it has failed for a day, `full` if too many '
        'notifications wait')
    created_at: str = body('Time of creation')


class Nouns(_base.Proxy):
    """What can be done with nouns."""

    _resource_registry = {
        'allocation': Allocation, 'calendar': Calendar, 'capacity': Capacity,
        'flavor': Flavor, 'floating_ip': FloatingIP, 'host': Host, 'lease':
        Lease, 'lease_request': LeaseRequest, 'limit': Limit, 'maintenance':
        Maintenance, 'offer': Offer, 'product': Product, 'property': Property,
        'series': Series, 'timeline': Timeline, 'usage': Usage, 'webhook':
        Webhook,
    }

    def calendars(self) -> Generator[Calendar, None, None]:
        """List the calendars of the project."""
        return Calendar.list(self)

    def get_calendar(self, calendar: str | Calendar) -> Calendar:
        """Get a calendar, without its link."""
        return self._get(Calendar, calendar)

    def find_calendar(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Calendar | None:
        """Find a calendar by its name or ID."""
        return self._find(Calendar, name_or_id, ignore_missing)

    def create_calendar(self, **attrs: Any) -> Calendar:
        """Create a calendar; only the response has its link."""
        return self._post(Calendar, False, attrs)

    def delete_calendar(
        self, calendar: str | Calendar, ignore_missing: bool = True
    ) -> None:
        """Delete a calendar: its link is not valid any more."""
        self._remove(Calendar, calendar, ignore_missing)

    def flavors(self) -> Generator[Flavor, None, None]:
        """List the flavors of Nova that the project may use, by name."""
        return Flavor.list(self)

    def floating_ips(self) -> Generator[FloatingIP, None, None]:
        """List the reservable floating IPs."""
        return FloatingIP.list(self)

    def get_floating_ip(self, floating_ip: str | FloatingIP) -> FloatingIP:
        """Get a reservable floating IP."""
        return self._get(FloatingIP, floating_ip)

    def find_floating_ip(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> FloatingIP | None:
        """Find a floating IP by its name or ID."""
        return self._find(FloatingIP, name_or_id, ignore_missing)

    def create_floating_ip(self, **attrs: Any) -> FloatingIP:
        """Register a floating IP of an external network as reservable."""
        return self._post(FloatingIP, False, attrs)

    def delete_floating_ip(
        self, floating_ip: str | FloatingIP, ignore_missing: bool = True
    ) -> None:
        """Make a floating IP no longer reservable."""
        self._remove(FloatingIP, floating_ip, ignore_missing)

    def hosts(self) -> Generator[Host, None, None]:
        """List the reservable hosts."""
        return Host.list(self)

    def get_host(self, host: str | Host) -> Host:
        """Get a host."""
        return self._get(Host, host)

    def find_host(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Host | None:
        """Find a host by its name or ID."""
        return self._find(Host, name_or_id, ignore_missing)

    def create_host(self, **attrs: Any) -> Host:
        """Register the compute host with the given name as reservable."""
        return self._post(Host, False, attrs)

    def update_host(self, host: str | Host, **attrs: Any) -> Host:
        """Change a host's capabilities and settings; None deletes one."""
        return self._put(Host, host, False, attrs)

    def delete_host(
        self, host: str | Host, ignore_missing: bool = True
    ) -> None:
        """Make a host no longer reservable."""
        self._remove(Host, host, ignore_missing)

    def leases(self, **query: Any) -> Generator[Lease, None, None]:
        """List the leases of the project, or of all projects for an admin.

        :param query: `name`, `status`, `project_id`, `active_at`,
            `start_date`, `end_date`, `resource_type`, `host`, `degraded`,
            `label`, `sort`, `limit`, `marker`, `fields`
        """
        return Lease.list(self, **query)

    def get_lease(self, lease: str | Lease) -> Lease:
        """Get a lease."""
        return self._get(Lease, lease)

    def find_lease(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Lease | None:
        """Find a lease by its name or ID."""
        return self._find(Lease, name_or_id, ignore_missing)

    def create_lease(self, *, dry_run: bool = False, **attrs: Any) -> Lease:
        """Create a lease with all of its reservations, or create nothing."""
        return self._post(Lease, dry_run, attrs)

    def update_lease(
        self, lease: str | Lease, *, dry_run: bool = False, **attrs: Any
    ) -> Lease:
        """Make all of the requested changes of a lease, or change nothing."""
        return self._put(Lease, lease, dry_run, attrs)

    def delete_lease(
        self, lease: str | Lease, ignore_missing: bool = True, *,
        dry_run: bool = False
    ) -> None:
        """End a lease that has started, and delete the lease."""
        self._remove(Lease, lease, ignore_missing, dry_run)

    def lease_requests(self) -> Generator[LeaseRequest, None, None]:
        """List the lease requests of the project."""
        return LeaseRequest.list(self)

    def get_lease_request(
        self, lease_request: str | LeaseRequest
    ) -> LeaseRequest:
        """Get a lease request, with the start that it may expect."""
        return self._get(LeaseRequest, lease_request)

    def find_lease_request(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> LeaseRequest | None:
        """Find a lease request by its name or ID."""
        return self._find(LeaseRequest, name_or_id, ignore_missing)

    def create_lease_request(self, **attrs: Any) -> LeaseRequest:
        """Create a lease at the first start with room, or wait for room."""
        return self._post(LeaseRequest, False, attrs)

    def delete_lease_request(
        self, lease_request: str | LeaseRequest, ignore_missing: bool = True
    ) -> None:
        """Cancel a lease request that waits for room."""
        self._remove(LeaseRequest, lease_request, ignore_missing)

    def limits(self, **query: Any) -> Generator[Limit, None, None]:
        """List the limits of the project, with what it uses of them.

        :param query: `project_id`
        """
        return Limit.list(self, **query)

    def maintenances(self) -> Generator[Maintenance, None, None]:
        """List the maintenances."""
        return Maintenance.list(self)

    def get_maintenance(self, maintenance: str | Maintenance) -> Maintenance:
        """Get a maintenance, with the reservations that are in its way."""
        return self._get(Maintenance, maintenance)

    def find_maintenance(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Maintenance | None:
        """Find a maintenance by its name or ID."""
        return self._find(Maintenance, name_or_id, ignore_missing)

    def create_maintenance(
        self, *, dry_run: bool = False, **attrs: Any
    ) -> Maintenance:
        """Close hosts over a window, and move reservations off the hosts."""
        return self._post(Maintenance, dry_run, attrs)

    def update_maintenance(
        self, maintenance: str | Maintenance, *, dry_run: bool = False,
        **attrs: Any
    ) -> Maintenance:
        """Change the name, the reason or the window of a maintenance."""
        return self._put(Maintenance, maintenance, dry_run, attrs)

    def delete_maintenance(
        self, maintenance: str | Maintenance, ignore_missing: bool = True
    ) -> None:
        """End or cancel a maintenance: its hosts are open again."""
        self._remove(Maintenance, maintenance, ignore_missing)

    def offers(self) -> Generator[Offer, None, None]:
        """List the held offers of the project."""
        return Offer.list(self)

    def get_offer(self, offer: str | Offer) -> Offer:
        """Get a held offer."""
        return self._get(Offer, offer)

    def find_offer(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Offer | None:
        """Find an offer by its ID."""
        return self._find(Offer, name_or_id, ignore_missing)

    def delete_offer(
        self, offer: str | Offer, ignore_missing: bool = True
    ) -> None:
        """Delete a held offer, so that its room is free again."""
        self._remove(Offer, offer, ignore_missing)

    def products(self, **query: Any) -> Generator[Product, None, None]:
        """List the operator's products, with how much is free in a window.

        :param query: `start_date`, `end_date`
        """
        return Product.list(self, **query)

    def properties(self, **query: Any) -> Generator[Property, None, None]:
        """List the public properties; ``?detail`` shows their values too.

        :param query: `detail`, `all`
        """
        return Property.list(self, **query)

    def series(self) -> Generator[Series, None, None]:
        """List the series of the project, or of all projects for an admin."""
        return Series.list(self)

    def get_series(self, series: str | Series) -> Series:
        """Get a series, with its occurrences."""
        return self._get(Series, series)

    def find_series(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Series | None:
        """Find a series by its name or ID."""
        return self._find(Series, name_or_id, ignore_missing)

    def create_series(self, *, dry_run: bool = False, **attrs: Any) -> Series:
        """Create a series, and book its occurrences of the next time."""
        return self._post(Series, dry_run, attrs)

    def update_series(
        self, series: str | Series, *, dry_run: bool = False, **attrs: Any
    ) -> Series:
        """Change a series from an occurrence on."""
        return self._put(Series, series, dry_run, attrs)

    def delete_series(
        self, series: str | Series, ignore_missing: bool = True
    ) -> None:
        """Delete a series with its leases that have not started."""
        self._remove(Series, series, ignore_missing)

    def usage(self, **query: Any) -> Generator[Usage, None, None]:
        """Report what reservations have reserved and used, in hours.

        :param query: `start_date`, `end_date`, `group_by`, `project_id`
        """
        return Usage.list(self, **query)

    def webhooks(self) -> Generator[Webhook, None, None]:
        """List the webhooks of the project."""
        return Webhook.list(self)

    def get_webhook(self, webhook: str | Webhook) -> Webhook:
        """Get a webhook, and why it fails."""
        return self._get(Webhook, webhook)

    def find_webhook(
        self, name_or_id: str, ignore_missing: bool = True
    ) -> Webhook | None:
        """Find a webhook by its ID."""
        return self._find(Webhook, name_or_id, ignore_missing)

    def create_webhook(self, **attrs: Any) -> Webhook:
        """Create a webhook."""
        return self._post(Webhook, False, attrs)

    def delete_webhook(
        self, webhook: str | Webhook, ignore_missing: bool = True
    ) -> None:
        """Delete a webhook, with the notifications that wait for it."""
        self._remove(Webhook, webhook, ignore_missing)
