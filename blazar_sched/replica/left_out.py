# SPDX-License-Identifier: Apache-2.0
"""Records that a replica cannot use, and the hosts that these records close.

No ledger should have such a record: a manager commits no allocation that its
own replica refuses. But another version, or a person, may have written to the
ledger, and the report of Nova about a server is true even if the server cannot
be counted. A reader of the ledger continues without such a record, and
lets no more servers or allocations onto the host that the record refers to.
"""

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses

from oslo_log import log as logging

from blazar_sched import ext
from blazar_sched.replica import record

LOG = logging.getLogger(__name__)

# The only field of a record that marks another record as left out, and says
# why.
_MARK = 'left_out'


@dataclasses.dataclass(frozen=True, slots=True)
class _Reason:
    """Why a record is left out.

    `for_now` tells whether the record may be usable after other changes.
    """

    text: str
    for_now: bool


class LeftOut:
    """The records left out of a replica; each record is logged once."""

    def __init__(self) -> None:
        self._known: dict[record.Key, tuple[record.Record, _Reason]] = {}
        self._closing: dict[str, set[record.Key]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: record.Key) -> bool:
        return key in self._known

    @property
    def closed(self) -> set[str]:
        """The uuids of the hosts that the records left out refer to."""
        return set(self._closing)

    @property
    def hosts(self) -> list[str]:
        """The uuids of the hosts whose own records are left out."""
        return [key for kind, key in self._known if kind == record.HOST]

    @property
    def reservations(self) -> list[str]:
        """The ids of the reservations whose records are left out."""
        return [key for kind, key in self._known if kind == record.RESERVATION]

    def add(self, each: record.Record, error: Exception) -> None:
        """Leave a record out, in place of any earlier record of its key."""
        self._add(each, _reason(error))

    def discard(self, key: record.Key) -> None:
        """Forget the record of a key, if the record is left out."""
        if key not in self._known:
            return
        host = host_of(self._known.pop(key)[0])
        if host is not None:
            self._closing[host].discard(key)
            if not self._closing[host]:
                del self._closing[host]

    def for_now(self) -> list[record.Record]:
        """Return the records that may be usable after other changes."""
        return [
            each for each, reason in self._known.values() if reason.for_now
        ]

    def items(self) -> Iterator[record.Record]:
        """Yield the records, each marked as left out."""
        for key in self._known:
            yield self.item(key)

    def item(self, key: record.Key) -> record.Record:
        """Return the record of a key that is left out, marked."""
        return _marked(*self._known[key])

    def take(self, each: record.Record) -> bool:
        """Leave a record out if it is marked; return whether it is marked.

        :raises ValueError: if the mark is malformed
        """
        kind, key, data = each
        if data is None or _MARK not in data:
            return False
        try:
            fields = dict(data[_MARK])
            self._add((kind, key, fields.pop('data')), _Reason(**fields))
        except (KeyError, TypeError, ValueError) as e:
            raise ValueError(f'not a record left out: {e}') from e
        return True

    def _add(self, each: record.Record, reason: _Reason) -> None:
        kind, key, _ = each
        if (each, reason) == self._known.get((kind, key)):
            return
        LOG.error(
            'The %s %s in the ledger is invalid and left out until it '
            'changes: %s', kind, key, reason.text,
        )
        self.discard((kind, key))
        self._known[kind, key] = each, reason
        host = host_of(each)
        if host is not None:
            self._closing[host].add((kind, key))


def marked(each: record.Record, error: Exception) -> record.Record:
    """Return a marked record that tells all replicas to leave a record out."""
    return _marked(each, _reason(error))


def check(records: Iterable[record.Record]) -> Iterator[record.Record]:
    """Yield the records of the ledger, with malformed records marked."""
    for each in records:
        kind, _, data = each
        try:
            if data is not None:
                record.decode(kind, data)
        except ValueError as e:
            yield marked(each, e)
        else:
            yield each


def _marked(each: record.Record, reason: _Reason) -> record.Record:
    kind, key, data = each
    return kind, key, {_MARK: {'data': data, **dataclasses.asdict(reason)}}


def _reason(error: Exception) -> _Reason:
    return _Reason(
        f'{type(error).__name__}: {error}',
        isinstance(error, ext.TimelineError),
    )


def host_of(each: record.Record) -> str | None:
    """Return the uuid of the host that a record refers to, if there is one."""
    kind, key, data = each
    if kind == record.HOST:
        return key
    host = None if data is None else data.get('host')
    return host if isinstance(host, str) else None
