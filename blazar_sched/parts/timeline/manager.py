# SPDX-License-Identifier: Apache-2.0
"""The timeline: what takes the hosts in a window, by row, page by page.

What a caller must not see is left out here, so that no message on the bus has
it: see `_shown`.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import hashlib
import itertools
import json
import threading
from typing import Any

import cachetools

from blazar_sched.domain import exception
from blazar_sched.domain import requirements
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.window import Window
from blazar_sched.parts.timeline import row
from blazar_sched.parts.timeline.row import FLAVOR
from blazar_sched.parts.timeline.row import FreeShares
from blazar_sched.parts.timeline.row import Groups
from blazar_sched.parts.timeline.row import HOST
from blazar_sched.parts.timeline.row import ZONE
from blazar_sched.placing import bar as bar_rules
from blazar_sched.placing.bar import Bar
from blazar_sched.placing.bar import LEASE
from blazar_sched.placing.bar import OFFER
from blazar_sched.placing.bar import Use
from blazar_sched.placing.options import Options
from blazar_sched.replica import state
from blazar_sched.replica import wire
from blazar_sched.service.booking import placing_options
from blazar_sched.service.manager import window_capacity
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running

# What a page is made of.
_State = tuple[object, ...]

# The number of pages whose tags are kept.
MAX_TAGS = 1000
# Seconds for which a start that is not given, and a state, stay the same.
MINUTE = 60
WEEK = 7 * 86400
MAX_DURATION = 10 * 366 * 86400
# The rows of a page by default; the most rows of a page, by what they stand
# for, and bars of a row.
USUAL_ROWS = 100
MAX_ROWS = 500
MAX_FLAVORS = 10
MAX_BARS = 1000
# Allocations that are read for a page.
MAX_USES = 20000
# Hosts times parts for which commits wait at a time.
SLICE = 100000
# The most characters of a marker, and of the key of a row.
MAX_MARKER = 255
# The groupings that are remembered; each one takes some bytes per host.
MAX_GROUPINGS = 32
# The fields of a bar that a caller sees only if the caller may see the project
# of the bar.
_HIDDEN = (
    'lease_id', 'reservation_id', 'name', 'status', 'degraded', 'project_id',
    'server_id',
)

Values = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """A query for a page of the timeline.

    :param project_id: the project of the caller
    :param names: whether the caller sees the names of hosts, and the leases of
        all projects
    :param group_by: HOST, ZONE, FLAVOR, or `$` and the name of a property
    :param resource_class: the resource class of which shares are shown, on the
        hosts that have the class; None for all hosts, and for the class of
        which the most is taken
    :param parts: number of parts, None for none
    :param marker: the key of the row after which the page begins, which may be
        gone
    """

    project_id: str
    names: bool
    group_by: str = HOST
    start: int | None = None
    end: int | None = None
    resource_properties: str = ''
    resource_class: str | None = None
    parts: int | None = None
    limit: int | None = None
    marker: str | None = None


class Timeline:
    """The timeline of the hosts."""

    def __init__(self, manager: Manager) -> None:
        self._conf = manager.conf.manager
        self._ledger = manager.ledger
        self._capacity = manager.capacity
        self._clock = manager.clock
        # The groups of the last query for each grouping, and of which hosts.
        self._groups: dict[
            tuple[str, str, str], tuple[list[Host], Groups]
        ] = {}
        # The tags of the last pages, by what the pages were made of.
        self._tags: cachetools.LRUCache[_State, str]
        self._tags = cachetools.LRUCache(MAX_TAGS)
        self._tags_lock = threading.Lock()

    def get(self, query: Query, known: Collection[str] = ()) -> Values:
        """Return a page of the timeline, with its tag.

        :param known: the tags of pages that the caller has: the timeline is
            None if the page has one of these tags
        :raises InvalidInput: naming the parameter that is wrong
        """
        now = int(self._clock())
        window = _window(query, now)
        parts = _parts(query, window)
        # The state is that before the page, so a commit meanwhile makes
        # another state next time.
        state = self._state(query, window, now)
        with self._tags_lock:
            tag = self._tags.get(state)
        if tag in known:
            return {'tag': tag, 'timeline': None}
        if query.group_by == FLAVOR:
            rows, more = self._flavor_rows(query, window)
        else:
            rows, more = self._host_rows(query, window, parts, now)
        shown, cut = wire.fitting(rows)
        page = {
            'start': window.start,
            'end': window.end,
            'group_by': query.group_by,
            'parts': [dataclasses.asdict(part) for part in parts],
            'rows': shown,
            'marker': shown[-1]['key'] if shown and (more or cut) else None,
        }
        # Of the page, as most commits change nothing of it.
        text = json.dumps(page, sort_keys=True)
        tag = hashlib.sha256(text.encode()).hexdigest()[:32]
        with self._tags_lock:
            self._tags[state] = tag
        return {'tag': tag, 'timeline': None if tag in known else page}

    def _state(self, query: Query, window: Window, now: int) -> _State:
        """Return what a page is made of; equal states have equal pages."""
        return (
            *self._ledger.version(), query, window.start, window.end,
            now // MINUTE,
        )

    def _flavor_rows(
        self, query: Query, window: Window
    ) -> tuple[Iterable[Values], bool]:
        """Return the rows of a page of flavors, and whether others follow."""
        if query.resource_class is not None:
            raise exception.InvalidInput(
                'resource_class is for rows of hosts', field='resource_class'
            )
        flavors = {
            flavor.id: flavor
            for flavor in self._ledger.flavors()
            if flavor.is_open_to(query.project_id)
        }
        limit = min(query.limit or MAX_FLAVORS, MAX_FLAVORS)
        keys = row.after(
            sorted(flavors, key=row.rank), query.marker, limit + 1
        )
        rows = []
        for key in keys[:limit]:
            try:
                found = self._capacity.get(
                    query.project_id, window.start, window.end,
                    query.parts or 1, query.resource_properties, key,
                )
            except exception.InvalidInput as e:
                if e.field != 'flavor_id':
                    raise
                # No project can reserve servers of the flavor.
                counts: list[int | None] = [0] * (query.parts or 1)
                found = {'hosts': 0, 'parts': []}
            else:
                counts = [part['instances'] for part in found['parts']]
            rows.append(_row(
                query, key, flavors[key].name, found['hosts'],
                [part['hosts'] for part in found['parts']]
                or [0] * len(counts),
                instances=counts,
            ))
        return rows, len(keys) > limit

    def _host_rows(
        self, query: Query, window: Window, parts: list[Window], now: int
    ) -> tuple[Iterable[Values], bool]:
        """Return the rows of a page of hosts, and whether others follow."""
        requirement = requirements.parse(
            query.resource_properties, 'resource_properties'
        )

        def look(
            replica: state.Replica
        ) -> tuple[list[Host], tuple[Instance, ...]]:
            return (
                replica.catalog.visible(
                    requirement, None if query.names else query.project_id
                ),
                tuple(replica.instances.values())
                if query.group_by == HOST
                else (),
            )

        hosts, instances = self._ledger.read_replica(look)
        if query.resource_class is not None:
            hosts = [h for h in hosts if h.capacity(query.resource_class)]
            if not hosts:
                raise exception.InvalidInput(
                    f'no host has resource class {query.resource_class}',
                    field='resource_class',
                )
        groups = self._grouped(query, hosts)
        limit = min(query.limit or USUAL_ROWS, MAX_ROWS)
        keys = row.after(groups.keys, query.marker, limit + 1)
        more = len(keys) > limit
        keys = keys[:limit]
        if query.group_by == HOST:
            options = placing_options.read(self._conf)
            rows = {key: groups.hosts(key)[0] for key in keys}
            read, uses = self._uses(rows, window, options)
            more = more or len(read) < len(keys)
            keys = list(read)
            bars = bar_rules.bars_by_host(
                read, uses, instances, window, now, options,
                query.resource_class,
            )
        else:
            bars = row.bars_by_group(
                groups, keys,
                self._ledger.uses(
                    window, MAX_USES, project_id=query.project_id
                ),
                query.resource_class,
            )
        free = self._free(query, groups, keys, parts, now)
        return (
            _row_of_hosts(
                query, groups, key, bars.get(key, ()),
                [part[number] for part in free],
            )
            for number, key in enumerate(keys)
        ), more

    def _grouped(self, query: Query, hosts: list[Host]) -> Groups:
        """Return the hosts by row, remembered as long as no host changes."""
        scope = '' if query.names else query.project_id
        of = (
            query.group_by, scope if query.group_by == HOST else '',
            query.resource_class or '',
        )
        known = self._groups.get(of)
        if known is not None and known[0] == hosts:
            return known[1]
        groups = Groups((_key(host, query), host) for host in hosts)
        if len(self._groups) >= MAX_GROUPINGS:
            self._groups.clear()
        self._groups[of] = hosts, groups
        return groups

    def _uses(
        self, hosts: dict[str, Host], window: Window, options: Options
    ) -> tuple[dict[str, Host], list[Use]]:
        """Return the first rows of one host each, with their allocations.

        If the rows have very many allocations, fewer rows are returned.
        """
        while True:
            uses = self._ledger.uses(
                bar_rules.widened(window, hosts.values(), options), MAX_USES,
                hosts=[host.uuid for host in hosts.values()],
            )
            if len(uses) < MAX_USES or len(hosts) <= 1:
                return hosts, uses
            hosts = dict(itertools.islice(hosts.items(), len(hosts) // 2))

    def _free(
        self, query: Query, groups: Groups, keys: list[str],
        parts: list[Window], now: int,
    ) -> list[list[tuple[float, int]]]:
        """Return the free share and the free hosts of each row, by part.

        Commits wait for some parts at a time.
        """
        if not parts:
            return []
        shares = FreeShares(
            [groups.in_service(key) for key in keys], query.resource_class
        )
        step = max(1, SLICE // (len(shares) or 1))
        found: list[list[tuple[float, int]]] = []
        for first in range(0, len(parts), step):
            some = parts[first:first + step]

            def look(
                replica: state.Replica, some: list[Window] = some
            ) -> list[list[tuple[float, int]]]:
                replica.advance(now)
                return shares.query(replica.indexes, some)

            found += self._ledger.read_replica(look)
        return found


def _window(query: Query, now: int) -> Window:
    start = query.start
    if start is None:
        start = now // MINUTE * MINUTE
    window = Window(start, start + WEEK if query.end is None else query.end)
    if window.duration > MAX_DURATION:
        raise exception.InvalidInput(
            'end_date must be at most ten years after the start',
            field='end_date',
        )
    return window


def _parts(query: Query, window: Window) -> list[Window]:
    count = query.parts
    if count is None:
        if query.group_by == HOST:
            return []
        count = 1
    return window_capacity.divide(window, count)


def _key(host: Host, query: Query) -> str:
    """Return the key of the row of a host.

    A caller that may not see the names of hosts gets a key that tells nothing
    about the host and differs from the keys of other projects: a hash of the
    project and of the host's UUID, which cannot be guessed.
    """
    if query.group_by == HOST:
        if query.names:
            return host.id
        secret = f'{query.project_id}/{host.uuid}'
        return hashlib.sha256(secret.encode()).hexdigest()[:32]
    if query.group_by == ZONE:
        return host.availability_zone
    return _value(host, query.group_by.removeprefix('$'))


def _value(host: Host, name: str) -> str:
    """Return the value of a property as the key of a row; '' for no value."""
    value = host.properties().get(name, '')
    if len(value) <= MAX_MARKER:
        return value
    digest = hashlib.sha256(value.encode()).hexdigest()[:32]
    return f'{value[:MAX_MARKER - 40]}… {digest}'


def _row_of_hosts(
    query: Query, groups: Groups, key: str, bars: Sequence[Bar],
    free: Sequence[tuple[float, int]],
) -> Values:
    """Return the row of one host or of a group, as the caller may see it.

    :param free: the free share and the free hosts, by part
    """
    first = groups.hosts(key)[0]
    by_host = query.group_by == HOST
    return _row(
        query, key, first.hypervisor_hostname if by_host else key or None,
        len(groups.in_service(key).uuids), [hosts for _, hosts in free],
        first.availability_zone if by_host else None, bars,
        [_cut(share) for share, _ in free],
    )


def _row(
    query: Query, key: str, name: str | None, hosts: int,
    free_hosts: list[int], zone: str | None = None, bars: Sequence[Bar] = (),
    free: list[float] | None = None, instances: list[int | None] | None = None,
) -> Values:
    """Return a row in JSON primitives, as the caller may see it.

    :param free: the free share by part, None if the row stands for a flavor
    :param instances: by part, None unless the row stands for a flavor
    """
    shown = sorted(
        (
            _shown(bar, query) for bar in bars
            if bar.share or query.resource_class is None
        ),
        key=_order,
    )
    left = shown[:MAX_BARS]
    seen = query.names or query.group_by != HOST
    for bar, track in zip(
        left, row.tracks((bar['start'], bar['end']) for bar in left),
        strict=True,
    ):
        bar['track'] = track
    return {
        'key': key,
        'name': name if seen else None,
        'zone': zone,
        'hosts': hosts,
        'available': hosts > 0,
        'free': free,
        'free_hosts': free_hosts,
        'instances': instances,
        'bars': left,
        'bars_left_out': len(shown) - len(left),
    }


def _shown(bar: Bar, query: Query) -> Values:
    """Return a bar as the caller may see it: free or busy if not its own."""
    mine = bar.project_id == query.project_id
    seen = mine or query.names
    shown = {
        # Other projects do not see that a lease is only an offer.
        'kind': LEASE if bar.kind == OFFER and not seen else bar.kind,
        'start': bar.start,
        'end': bar.end,
        'share': _cut(bar.share),
        'mine': mine,
    }
    return {
        **shown,
        **{name: getattr(bar, name) if seen else None for name in _HIDDEN},
    }


def _order(bar: Values) -> tuple[Any, ...]:
    """Return the sort key of a bar, of nothing but what the caller sees."""
    return (
        bar['start'], bar['end'], bar['kind'], bar['share'],
        bar['reservation_id'] or '', bar['server_id'] or '',
    )


def _cut(share: float) -> float:
    """Return a share, rounded down."""
    return int(share * 10000 + 1e-6) / 10000


def start(manager: Manager) -> Running:
    """Answer the call for the timeline."""
    timeline = Timeline(manager)

    def get_timeline(known: list[str], **wanted: Any) -> Values:
        """Return a page of the timeline; see `Query` for the rest."""
        return timeline.get(Query(**wanted), known)

    return Running({'get_timeline': get_timeline})
