# SPDX-License-Identifier: Apache-2.0
"""The pages that replicas pull: plain JSON values, with a version.

Pure functions. The ledger builds pages here and the puller parses them here,
so that both sides of the wire stand on one screen. Nothing is pickled. Only a
snapshot is packed (see replica.packing): changes are few.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
from typing import Any

from blazar_sched.replica import packing
from blazar_sched.replica import record

WIRE_VERSION = 2

# Where the manager listens. The exchange is named because each side's default
# one comes from a configuration of its own.
EXCHANGE = 'blazar_sched'
TOPIC = 'blazar_sched_manager'
RPC_VERSION = '1.0'

Page = dict[str, Any]


class WireVersionError(ValueError):
    """The other side speaks another version of the wire format."""


@dataclasses.dataclass(frozen=True, slots=True)
class Changes:
    """The records of the revisions ``(since, revision]``.

    `revision` is None when the ledger no longer knows (or never knew)
    `since`: only a snapshot helps then. `newest` is the ledger's revision.
    """

    ledger: str
    since: int
    revision: int | None
    records: list[record.Record]
    newest: int


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """One page of a full copy, read at `revision`.

    `next` asks for the following page; None on the last one.
    """

    ledger: str
    revision: int
    records: list[record.Record]
    next: str | None


def changes_page(
    ledger: str,
    since: int,
    revision: int | None,
    records: Iterable[record.Record],
    newest: int,
) -> Page:
    """Build a page of changes; `revision` None asks for a snapshot."""
    return {
        'version': WIRE_VERSION,
        'ledger': ledger,
        'since': since,
        'revision': revision,
        'records': [list(r) for r in records],
        'newest': newest,
    }


def snapshot_page(
    ledger: str,
    revision: int,
    records: Iterable[record.Record],
    next_: str | None,
) -> Page:
    """Build a page of a snapshot; `next_` None marks the last one."""
    return {
        'version': WIRE_VERSION,
        'ledger': ledger,
        'revision': revision,
        'records': list(packing.compact(records)),
        'next': next_,
    }


def parse_changes(page: Any) -> Changes:
    """Read a page of changes.

    :raises WireVersionError: if it is of another version
    :raises ValueError: if it is malformed
    """
    _check_version(page)
    revision = page.get('revision')
    changes = Changes(
        ledger=_text(page, 'ledger'),
        since=_count(page, 'since'),
        revision=None if revision is None else _count(page, 'revision'),
        records=[_record(item) for item in _items(page)],
        newest=_count(page, 'newest'),
    )
    if changes.revision is not None and not (
        changes.since <= changes.revision <= changes.newest
    ):
        raise ValueError(
            f'revision {changes.revision} is not between since '
            f'{changes.since} and newest {changes.newest}'
        )
    return changes


def parse_snapshot(page: Any) -> Snapshot:
    """Read a page of a snapshot.

    :raises WireVersionError: if it is of another version
    :raises ValueError: if it is malformed
    """
    _check_version(page)
    return Snapshot(
        ledger=_text(page, 'ledger'),
        revision=_count(page, 'revision'),
        records=list(_unpacked(_items(page))),
        next=None if page.get('next') is None else _text(page, 'next'),
    )


def _check_version(page: Any) -> None:
    if not isinstance(page, dict):
        raise ValueError('the page is not an object')
    version = page.get('version')
    if type(version) is not int or version != WIRE_VERSION:
        raise WireVersionError(
            f'wire version {version!r} is not {WIRE_VERSION}'
        )


def _text(page: Page, name: str) -> str:
    value = page.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f'{name} is not a text')
    return value


def _count(page: Page, name: str) -> int:
    value = page.get(name)
    if type(value) is not int or value < 0:
        raise ValueError(f'{name} is not a whole number')
    return value


def _items(page: Page) -> list[Any]:
    value = page.get('records')
    if not isinstance(value, list):
        raise ValueError('records is not a list')
    return value


def _unpacked(items: Iterable[Any]) -> Iterator[record.Record]:
    for item in items:
        if isinstance(item, str):
            yield from packing.unpack(item)
        else:
            yield _record(item)


def _record(item: Any) -> record.Record:
    if not isinstance(item, list | tuple) or len(item) != 3:
        raise ValueError('a record is not [kind, key, data]')
    kind, key, data = item
    if not isinstance(kind, str) or not isinstance(key, str):
        raise ValueError("a record's kind and key are not texts")
    if data is not None and not isinstance(data, dict):
        raise ValueError("a record's data is not an object")
    return kind, key, data
