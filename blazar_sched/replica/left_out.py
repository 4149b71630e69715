# SPDX-License-Identifier: Apache-2.0
"""The records that a replica cannot use, and the hosts that they close.

Such a record should not be in any ledger: a manager commits no allocation that
its own replica refuses. But a ledger may have been written to by another
version, or by hand, and what Nova says of a server is true even where it
cannot be counted. Whoever reads the ledger goes on without such a record, and
lets nothing more onto the host that the record is of.
"""

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses

from oslo_log import log as logging

from blazar_sched import ext
from blazar_sched.replica import record

LOG = logging.getLogger(__name__)

# The one field of a record that says that another one is left out, and why.
_MARK = 'left_out'


@dataclasses.dataclass(frozen=True, slots=True)
class _Reason:
    """`for_now` is whether the record may be usable after other changes."""

    text: str
    for_now: bool


class LeftOut:
    """The records; each is logged once."""

    def __init__(self) -> None:
        self._known: dict[record.Key, tuple[record.Record, _Reason]] = {}
        self._closing: dict[str, set[record.Key]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: record.Key) -> bool:
        return key in self._known

    @property
    def closed(self) -> set[str]:
        """The uuids of the hosts that these records are of."""
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
        """Leave a record out, in the place of the one of its key."""
        self._add(each, _reason(error))

    def discard(self, key: record.Key) -> None:
        """Forget a record, if it is here."""
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
        """Yield the records, marked as what they are."""
        for each, reason in self._known.values():
            yield _marked(each, reason)

    def take(self, each: record.Record) -> bool:
        """Leave a record out if it is marked; return whether it is.

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
            'The %s %s in the ledger cannot be used, and is left out until it '
            'changes: %s', kind, key, reason.text,
        )
        self.discard((kind, key))
        self._known[kind, key] = each, reason
        host = host_of(each)
        if host is not None:
            self._closing[host].add((kind, key))


def marked(each: record.Record, error: Exception) -> record.Record:
    """Return what tells all replicas to leave a record out."""
    return _marked(each, _reason(error))


def check(records: Iterable[record.Record]) -> Iterator[record.Record]:
    """Yield records of the ledger; those that are malformed are marked."""
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
    """Return the uuid of the host that a record is of, if there is one."""
    kind, key, data = each
    if kind == record.HOST:
        return key
    host = None if data is None else data.get('host')
    return host if isinstance(host, str) else None
