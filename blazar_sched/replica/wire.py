# SPDX-License-Identifier: Apache-2.0
"""The pages that replicas pull: plain JSON values, with a version.

The functions are pure. The ledger builds pages here and the puller parses them
here, so that both sides of the wire format are in one module. Nothing is
pickled. Only a snapshot is packed (see replica.packing): changes are few.

News are not sent as pages: a worker that hears of a new revision asks for the
changes.
"""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import importlib.metadata
import json
from typing import Any
from typing import TypeVar

from blazar_sched.domain import settings
from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.settings import Settings
from blazar_sched.domain.settings import UNTOLD
from blazar_sched.replica import packing
from blazar_sched.replica import record

# The version of this format, and the oldest version that reads this format and
# that this program reads: see CONTRIBUTING for when each is raised.
WIRE_VERSION = 20
OLDEST_WIRE_VERSION = 20

# The exchange and topic of the manager. The exchange is named because the
# default exchange of each side comes from a configuration of its own.
EXCHANGE = 'blazar_sched'
TOPIC = 'blazar_sched_manager'
# The topic on which APIs receive questions.
API_TOPIC = 'blazar_sched_api'
# The version of all messages from and to nova-scheduler's workers, and of
# questions. What is in their pages has WIRE_VERSION.
RPC_VERSION = '1.0'
# The number of attempts to reach a broker again before a message is dropped;
# the wait before each attempt grows, from a second on.
RETRIES = 1

# The topic of the workers for ``newest(revision, ledger)``, a cast to all of
# them.
NEWS_TOPIC = 'blazar_sched_news'
NEWS_METHOD = 'newest'

# A worker that has placed an instance casts ``placed(worker, page)`` to all
# workers on that topic, and ``book_instance(page, placed_at)`` to a manager:
# `page` is that of `instance_page`, `placed_at` is in epoch seconds.
PLACED_METHOD = 'placed'
BOOK_METHOD = 'book_instance'
# What workers call or cast to a manager.
MANAGER_METHODS = frozenset(('changes', 'snapshot', BOOK_METHOD))

# The questions that workers receive on that topic, and answer with
# ``answer(question, worker, body)``, a cast to all processes that ask at that
# time: `question` is the id that each process gave to its own question.
# Managers and APIs receive ``report`` on their own topics.
EXPLAIN_METHOD = 'explain'
REPORT_METHOD = 'report'
ANSWERS_TOPIC = 'blazar_sched_answers'
ANSWER_METHOD = 'answer'

Page = dict[str, Any]
T = TypeVar('T')

# The longest JSON text of a page, unless one item alone is longer. On the bus
# the text may be twice as long: oslo.messaging puts the text of the message
# into another JSON text. RabbitMQ 4 takes no message above 16 MiB.
MAX_BYTES = 3 << 19


def versions() -> dict[str, Any]:
    """Return the versions of this program, for a report."""
    return {
        'version': importlib.metadata.version('blazar-sched'),
        'wire': WIRE_VERSION,
    }


# The fields that every page has.
FORMAT = {'version': WIRE_VERSION, 'oldest': OLDEST_WIRE_VERSION}


class WireVersionError(ValueError):
    """A page in a version of the wire format that cannot be read."""


def require_readable(version: int, oldest: int) -> None:
    """Refuse a version of the wire format that this program does not read.

    :param oldest: the oldest version that reads that version
    :raises WireVersionError: saying what must be upgraded
    """
    if version >= OLDEST_WIRE_VERSION and oldest <= WIRE_VERSION:
        return
    older = version < WIRE_VERSION
    raise WireVersionError(
        f"the manager's wire version {version} is "
        f'{"older" if older else "newer"} than ours, {WIRE_VERSION}: '
        'upgrade blazar-sched where '
        f'{"the manager" if older else "nova-scheduler"} runs'
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Changes:
    """The records of the revisions ``(since, revision]``.

    `revision` is None when the ledger no longer knows (or never knew)
    `since`: then a snapshot is needed. `newest` is the ledger's revision.
    `now` is the time of the manager that answers, in epoch seconds; None if
    the page is not from a manager. `settings` are those of the manager.
    """

    ledger: str
    since: int
    revision: int | None
    records: list[record.Record]
    newest: int
    now: float | None = None
    settings: Settings = UNTOLD


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """One page of a full copy, read at `revision`.

    `after` is the position that was asked for, None for the first page.
    `items` are a part of the stream that all pages form: see replica.packing.
    `next` is the position to ask for to get the following page; None on the
    last page.
    """

    ledger: str
    revision: int
    after: str | None
    items: list[packing.Item]
    next: str | None


def fitting(
    items: Iterable[T], value: Callable[[T], Any] = lambda item: item
) -> tuple[list[T], bool]:
    """Return the first items that a page has room for; at least one.

    At most one of the remaining items is taken from the iterator.

    :param value: returns an item as it is in the page, in JSON primitives
    :returns: the items, and whether other items follow
    """
    found: list[T] = []
    room = MAX_BYTES
    for item in items:
        room -= len(json.dumps(value(item)))
        if room < 0 and found:
            return found, True
        found.append(item)
    return found, False


def changes_page(
    ledger: str, since: int, revision: int | None,
    records: Iterable[record.Record], newest: int,
) -> Page:
    """Build a page of changes; `revision` None asks for a snapshot."""
    return {
        **FORMAT,
        'ledger': ledger,
        'since': since,
        'revision': revision,
        'records': [list(r) for r in records],
        'newest': newest,
    }


def snapshot_page(
    ledger: str, revision: int, after: str | None,
    items: Iterable[packing.Item], next_: str | None,
) -> Page:
    """Build a page of a snapshot; `next_` None marks the last page."""
    return {
        **FORMAT,
        'ledger': ledger,
        'revision': revision,
        'after': after,
        'items': [i if isinstance(i, str) else list(i) for i in items],
        'next': next_,
    }


def instance_page(instance: Instance) -> Page:
    """Build a page of one instance record."""
    return {
        **FORMAT,
        'record': list(record.encode(instance)),
    }


def parse_instance(page: object) -> Instance:
    """Read a page of one instance record.

    :raises WireVersionError: if the version of the page is not readable
    :raises ValueError: if the page is malformed
    """
    page = _checked(page)
    kind, _, data = _record(page.get('record'))
    entity = record.decode(kind, data or {})
    if not isinstance(entity, Instance):
        raise ValueError(f'the record of kind {kind!r} is not of an instance')
    return entity


def parse_changes(page: object) -> Changes:
    """Read a page of changes.

    :raises WireVersionError: if the version of the page is not readable
    :raises ValueError: if the page is malformed
    """
    page = _checked(page)
    revision, now = page.get('revision'), page.get('now')
    if now is not None and not (
        type(now) in (int, float) and 0 <= now < window.TIME_LIMIT
    ):
        raise ValueError('now is no time')
    changes = Changes(
        ledger=_text(page, 'ledger'), since=_count(page, 'since'),
        revision=None if revision is None else _count(page, 'revision'),
        records=[_record(item) for item in _list(page, 'records')],
        newest=_count(page, 'newest'), now=now, settings=read_settings(page),
    )
    if changes.revision is not None and not (
        changes.since <= changes.revision <= changes.newest
    ):
        raise ValueError(
            f'revision {changes.revision} is not between since '
            f'{changes.since} and newest {changes.newest}'
        )
    # Every revision has a record.
    if len(changes.records) < (changes.revision or 0) - changes.since:
        raise ValueError(
            f'{len(changes.records)} records cannot be all changes after '
            f'revision {changes.since} up to {changes.revision}'
        )
    return changes


def parse_snapshot(page: object) -> Snapshot:
    """Read a page of a snapshot.

    :raises WireVersionError: if the version of the page is not readable
    :raises ValueError: if the page is malformed
    """
    page = _checked(page)
    return Snapshot(
        ledger=_text(page, 'ledger'), revision=_count(page, 'revision'),
        after=_place(page, 'after'),
        items=[item(each) for each in _list(page, 'items')],
        next=_place(page, 'next'),
    )


def read_settings(page: Page) -> Settings:
    """Return the settings in a page; the defaults if the page has none.

    :raises ValueError: if the settings are malformed
    """
    found = page.get('settings')
    return UNTOLD if found is None else settings.decode(found)


def item(value: object) -> packing.Item:
    """Read an item of a full copy; packed items stay packed.

    :raises ValueError: if the item is malformed
    """
    return value if isinstance(value, str) else _record(value)


def _checked(page: object) -> Page:
    """Return the page, which must be an object of a version that is read."""
    if not isinstance(page, dict):
        raise ValueError('the page is not an object')
    version = page.get('version')
    if type(version) is not int:
        raise ValueError('the page has no version')
    oldest = page.get('oldest', version)
    if type(oldest) is not int:
        raise ValueError('oldest is not a version')
    require_readable(version, oldest)
    return page


def _text(page: Page, name: str) -> str:
    value = page.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f'{name} is not a text')
    return value


def _place(page: Page, name: str) -> str | None:
    return None if page.get(name) is None else _text(page, name)


def _count(page: Page, name: str) -> int:
    value = page.get(name)
    if type(value) is not int or value < 0:
        raise ValueError(f'{name} is not a whole number')
    return value


def _list(page: Page, name: str) -> list[object]:
    value = page.get(name)
    if not isinstance(value, list):
        raise ValueError(f'{name} is not a list')
    return value


def _record(item: object) -> record.Record:
    if not isinstance(item, list | tuple) or len(item) != 3:
        raise ValueError('a record is not [kind, key, data]')
    kind, key, data = item
    if not isinstance(kind, str) or not isinstance(key, str):
        raise ValueError("a record's kind and key are not texts")
    if data is not None and not isinstance(data, dict):
        raise ValueError("a record's data is not an object")
    return kind, key, data
