# SPDX-License-Identifier: Apache-2.0
"""A series: leases that recur by a rule of RFC 5545 in a time zone.

A rule is evaluated in the local time of the zone, so that a start at 09:00
stays at 09:00 when the clocks are changed. A start that a day skips, because
the clocks are set ahead, is the end of the gap; of a start that a day has
twice, the first one counts. The duration is elapsed time.
"""

import calendar
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import datetime
import itertools
import re
from typing import Any

from dateutil import rrule

from blazar_sched.domain import alignment
from blazar_sched.domain import exception
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window

# The most reservations that one request books, and the most occurrences that
# are compared with each other.
MAX_RESERVATIONS = MAX_OCCURRENCES = 1000
# The most reservations that are written or deleted in one commit, for which
# all other commits wait.
MAX_IN_COMMIT = 10
# The seconds after which a rule without another occurrence is over: more than
# from one 29 February to the next.
LOOK_AHEAD = 5 * 366 * 86400
# What is done about an occurrence without room when a series is created.
REFUSE = 'refuse'
SKIP = 'skip'

# No later occurrence is looked for: the year 9000.
_LAST = 221_845_392_000
_DAY = datetime.timedelta(days=1)
_WEEKDAYS = 'MO|TU|WE|TH|FR|SA|SU'
_NUMBER = '[0-9]{1,3}'
_DAYS = f'([+-]?[0-9]{{1,2}})?({_WEEKDAYS})'
# The parts that a rule may have: what each may be, and for which FREQ the
# part is allowed. A rule that has several starts in an hour is refused: no
# lease is that short, and such a rule takes long to evaluate. RFC 5545 forbids
# some parts for some FREQ. BYSETPOS is refused where it could leave each day
# or week without a start.
_PARTS = {
    'FREQ': 'YEARLY|MONTHLY|WEEKLY|DAILY|HOURLY',
    'INTERVAL': '[1-9][0-9]{0,3}',
    'COUNT': '[1-9][0-9]{0,5}',
    'UNTIL': '[0-9]{8}(T[0-9]{6}Z?)?',
    'WKST': _WEEKDAYS,
    'BYDAY': f'{_DAYS}(,{_DAYS})*',
    'BYMINUTE': '[0-9]{1,2}',
    'BYHOUR': f'{_NUMBER}(,{_NUMBER})*',
    **dict.fromkeys(
        ('BYMONTH', 'BYMONTHDAY', 'BYYEARDAY', 'BYWEEKNO', 'BYSETPOS'),
        f'[+-]?{_NUMBER}(,[+-]?{_NUMBER})*',
    ),
}
_ALLOWED_FREQ = {
    'BYMONTHDAY': ('YEARLY', 'MONTHLY', 'DAILY', 'HOURLY'),
    'BYYEARDAY': ('YEARLY', 'HOURLY'),
    'BYWEEKNO': ('YEARLY',),
    'BYSETPOS': ('YEARLY', 'MONTHLY'),
}
# The numbers that a part may have.
_RANGES = {
    'BYMINUTE': range(60),
    'BYHOUR': range(24),
    'BYMONTH': range(1, 13),
    'BYMONTHDAY': range(1, 32),
    'BYYEARDAY': range(1, 367),
    'BYWEEKNO': range(1, 54),
    'BYSETPOS': range(1, 367),
}
# The parts whose numbers are negative if counted from the end.
_FROM_END = ('BYMONTHDAY', 'BYYEARDAY', 'BYWEEKNO', 'BYSETPOS')
# The most days of the week that BYDAY counts.
_WEEKS = {'YEARLY': 53, 'MONTHLY': 5}
# The parts that, with FREQ=DAILY or HOURLY, only leave out days.
_OF_DAYS = ('BYMONTH', 'BYMONTHDAY', 'BYYEARDAY', 'BYDAY')
# The calendar repeats itself after so many years, with the days of the week.
_CYCLE = 400
# The seconds by which the start of a new series may be past: each start since
# then is evaluated.
_MAX_PAST = 366 * 86400
_DATE = re.compile('[0-9]{4}-[0-9]{2}-[0-9]{2}')
_START = re.compile(
    '[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?'
)


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """A series as the ledger holds it.

    `booked_until` is the start of the first occurrence that was not to be
    booked yet, FOREVER if there is none. `missing` names the occurrences
    before that for which no room was found; these are tried again from
    `retry_at` on. `start` is local time. `digest`
    identifies the request that has made the series, '' for a series from
    before the digest was stored. From `deleted_at` on, the leases of the
    series are being deleted, and no one sees the series.
    """

    id: str
    name: str
    project_id: str
    user_id: str
    rrule: str
    time_zone: str
    start: str
    duration: int
    reservations: list[dict[str, Any]]
    except_dates: list[str]
    if_no_room: str
    booked_until: int = 0
    missing: list[str] = dataclasses.field(default_factory=list)
    retry_at: int = 0
    digest: str = ''
    created_at: int | None = None
    updated_at: int | None = None
    deleted_at: int | None = None

    @property
    def most_at_once(self) -> int:
        """How many occurrences may be booked by one request."""
        return max(1, MAX_RESERVATIONS // max(1, len(self.reservations)))

    @property
    def most_in_commit(self) -> int:
        """How many leases may be written or deleted in one commit."""
        return max(1, MAX_IN_COMMIT // max(1, len(self.reservations)))

    @property
    def recurrence(self) -> 'Recurrence':
        return Recurrence.parse(dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True, slots=True)
class Occurrence:
    """An occurrence: the local time of its start, and its window."""

    name: str
    window: Window


@dataclasses.dataclass(frozen=True, slots=True)
class Recurrence:
    """The starts and the duration of the occurrences of a series.

    :param parts: the rule by the names of its parts
    :param start: the first time that can be a start, without a time zone
    :param excepted: the names, or only the dates, of occurrences to leave out
    """

    parts: Mapping[str, str]
    zone: datetime.tzinfo
    start: datetime.datetime
    duration: int
    excepted: Collection[str]

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> 'Recurrence':
        """Return the recurrence in the fields of a series.

        :raises InvalidInput: naming the field that is wrong
        """
        found = cls(
            _parts(values['rrule']),
            alignment.zone(values['time_zone'], 'time_zone'),
            _local(values['start'], 'start'), values['duration'],
            [_excepted(each) for each in values['except_dates']],
        )
        found._rule()
        return found

    def check_start(self, now: int) -> None:
        """Refuse a start since which too many starts would be evaluated.

        :raises InvalidInput: naming `start`
        """
        if alignment.instant(self.start, self.zone) < now - _MAX_PAST:
            raise exception.InvalidInput(
                'start must not be more than a year ago', field='start'
            )

    def check(self, after: int) -> None:
        """Refuse a recurrence without occurrences, or with overlapping ones.

        :param after: the first start that counts, in epoch seconds
        :raises InvalidInput: naming the field that is wrong
        """
        self.check_coming(after)
        self.check_apart(after)

    def check_coming(self, after: int) -> None:
        """Refuse a recurrence without occurrences.

        :param after: the first start that counts, in epoch seconds
        :raises InvalidInput: naming `rrule`
        """
        if self.following(after) == FOREVER:
            raise exception.InvalidInput(
                'rrule has no occurrence that is still to come, within five '
                'years of start',
                field='rrule',
            )

    def check_apart(self, after: int) -> None:
        """Refuse a recurrence with overlapping occurrences.

        The first MAX_OCCURRENCES occurrences are checked.

        :param after: the first start that counts, in epoch seconds
        :raises InvalidInput: naming `duration`
        """
        found = itertools.islice(
            self.occurrences(after, FOREVER), MAX_OCCURRENCES
        )
        for one, following in itertools.pairwise(found):
            if one.window.overlaps(following.window):
                raise exception.InvalidInput(
                    f'duration: occurrence {one.name} has not ended when '
                    f'occurrence {following.name} starts',
                    field='duration',
                )

    def occurrences(self, after: int, until: int) -> Iterator[Occurrence]:
        """Yield the occurrences that start in ``[after, until)``, in order.

        An excepted occurrence is left out, and so is an occurrence with the
        start of the one before: both are at the end of a gap.
        """
        before = None
        first = alignment.instant(self.start, self.zone)
        last = min(until, max(after, first) + LOOK_AHEAD, _LAST)
        if first >= last:
            return
        for local in self._locals(last):
            at = alignment.instant(local, self.zone)
            if at >= last or self._is_over(local, at):
                return
            if at < after or at == before:
                continue
            before = at
            name = _name(local)
            if name not in self.excepted and name[:10] not in self.excepted:
                yield Occurrence(name, Window(at, at + self.duration))

    def instant(self, text: str, field: str) -> int:
        """Return the epoch seconds of a local date or of a local time.

        :raises InvalidInput: naming `field`
        """
        local = f'{text}T00:00' if _DATE.fullmatch(text) else text
        return alignment.instant(_local(local, field), self.zone)

    def following(self, after: int) -> int:
        """Return the first start from `after` on, FOREVER if there is none.
        """
        for each in self.occurrences(after, FOREVER):
            return each.window.start
        return FOREVER

    def _locals(self, last: int) -> Iterator[datetime.datetime]:
        """Yield the local starts until a time, and some later ones.

        dateutil goes on to the year 9999 if a rule has no further start. The
        rule is therefore evaluated as many cycles of the calendar later as
        there are before that year.
        """
        bound = datetime.datetime.fromtimestamp(last, self.zone)
        years = (datetime.MAXYEAR - 1 - bound.year) // _CYCLE * _CYCLE
        rule = self._rule().replace(
            dtstart=_later(self.start, years),
            until=_later(bound.replace(tzinfo=None), years) + _DAY,
        )
        count = self.parts.get('COUNT')
        with _evaluating():
            yield from itertools.islice(
                (_later(at, -years) for at in rule if self._has_day(at)),
                None if count is None else int(count),
            )

    def _rule(self) -> rrule.rrule:
        # dateutil compares UNTIL with local times only, and cannot have an
        # end of its own beside COUNT. It looks at the end at each start only,
        # and would go through all hours until the year 9999 if no day had a
        # start: see _has_day.
        apart = {'COUNT', 'UNTIL'}
        if self._limits_days:
            apart.update(_OF_DAYS)
        text = ';'.join(
            f'{name}={value}' for name, value in self.parts.items()
            if name not in apart
        )
        with _evaluating():
            return rrule.rrulestr(text, dtstart=self.start)

    @property
    def _limits_days(self) -> bool:
        return self.parts['FREQ'] in ('DAILY', 'HOURLY')

    def _has_day(self, at: datetime.datetime) -> bool:
        """Tell whether a rule that recurs daily or hourly has a day."""
        if not self._limits_days:
            return True
        month = calendar.monthrange(at.year, at.month)[1]
        year = 365 + calendar.isleap(at.year)
        day = at.timetuple().tm_yday
        numbers = {
            'BYMONTH': {at.month},
            'BYMONTHDAY': {at.day, at.day - month - 1},
            'BYYEARDAY': {day, day - year - 1},
        }
        weekday = _WEEKDAYS.split('|')[at.weekday()]
        return weekday in self.parts.get('BYDAY', _WEEKDAYS) and all(
            not numbers[name].isdisjoint(_numbers(self.parts[name]))
            for name in numbers if name in self.parts
        )

    def _is_over(self, local: datetime.datetime, at: int) -> bool:
        until = self.parts.get('UNTIL')
        if until is None:
            return False
        limit = _until(until)
        if until.endswith('Z'):
            utc = limit.replace(tzinfo=datetime.UTC)
            return at > utc.timestamp()
        return local > limit


def _parts(text: str) -> dict[str, str]:
    """Return the parts of a rule by name.

    :raises InvalidInput: naming `rrule`
    """
    parts: dict[str, str] = {}
    for part in text.removeprefix('RRULE:').split(';'):
        name, _, value = part.partition('=')
        if name in parts:
            raise _wrong_rule(f'{name} is there twice')
        allowed = _PARTS.get(name)
        if allowed is None or not re.fullmatch(allowed, value):
            raise _wrong_rule(f'{part[:40]!r} is not supported')
        parts[name] = value
    if 'FREQ' not in parts:
        raise _wrong_rule('FREQ is missing')
    for name, value in parts.items():
        _check_part(name, value, parts)
    if 'BYWEEKNO' in parts and re.search('[0-9]', parts.get('BYDAY', '')):
        raise _wrong_rule('BYDAY with BYWEEKNO must have no numbers')
    if 'COUNT' in parts and 'UNTIL' in parts:
        raise _wrong_rule('COUNT and UNTIL exclude each other')
    if 'UNTIL' in parts:
        try:
            _until(parts['UNTIL'])
        except ValueError:
            raise _wrong_rule('UNTIL is not a time that exists') from None
    return parts


def _check_part(name: str, value: str, parts: Mapping[str, str]) -> None:
    """Refuse a part of a rule that RFC 5545 does not have.

    :raises InvalidInput: naming `rrule`
    """
    freq = parts['FREQ']
    if freq not in _ALLOWED_FREQ.get(name, (freq,)):
        raise _wrong_rule(f'{name} is not possible with FREQ={freq}')
    if name in _RANGES and not all(
        (abs(number) if name in _FROM_END else number) in _RANGES[name]
        for number in _numbers(value)
    ):
        raise _wrong_rule(f'{name} is out of range')
    if name == 'BYDAY':
        # With BYMONTH, the numbers count the days of the week of a month.
        period = 'MONTHLY' if 'BYMONTH' in parts else 'YEARLY'
        most = min(_WEEKS.get(freq, 0), _WEEKS[period])
        counts = re.findall('[0-9]+', value)
        if not all(1 <= int(count) <= most for count in counts):
            raise _wrong_rule(
                f'a number in BYDAY must be from 1 to {most}'
                if most else
                f'a number in BYDAY is not possible with FREQ={freq}'
            )


def _numbers(value: str) -> set[int]:
    """Return the numbers in a part of a rule."""
    return {int(number) for number in value.split(',')}


def _later(at: datetime.datetime, years: int) -> datetime.datetime:
    """Return a time of the calendar, whole cycles of years later."""
    return at.replace(year=at.year + years)


def _until(text: str) -> datetime.datetime:
    """Return the last time of an UNTIL; of a date, the end of the day."""
    if len(text) == 8:
        day = datetime.datetime.strptime(text, '%Y%m%d')
        return day.replace(hour=23, minute=59, second=59)
    return datetime.datetime.strptime(text[:15], '%Y%m%dT%H%M%S')


@contextlib.contextmanager
def _evaluating() -> Iterator[None]:
    """Refuse a rule that dateutil cannot evaluate.

    dateutil raises IndexError for some rules, in some years only.

    :raises InvalidInput: naming `rrule`
    """
    try:
        yield
    except Exception as e:
        raise _wrong_rule(f'{e}') from e


def _wrong_rule(why: str) -> exception.InvalidInput:
    return exception.InvalidInput(
        f'rrule must be a rule of RFC 5545 with FREQ=YEARLY, MONTHLY, WEEKLY, '
        f'DAILY or HOURLY: {why}',
        field='rrule',
    )


def _local(text: str, field: str) -> datetime.datetime:
    """Return a local time.

    :raises InvalidInput: naming `field`
    """
    try:
        if _START.fullmatch(text):
            return datetime.datetime.fromisoformat(text)
    except ValueError:
        pass
    raise exception.InvalidInput(
        f'{field} {text[:40]!r} must be a local time without a zone, as '
        '2030-01-07T09:00',
        field=field,
    )


def _excepted(text: str) -> str:
    """Return the date, or the name of an occurrence, in a text.

    :raises InvalidInput: naming `except`
    """
    if len(text) > 10:
        return _name(_local(text, 'except'))
    return _name(_local(f'{text}T00:00', 'except'))[:10]


def _name(local: datetime.datetime) -> str:
    return local.isoformat(timespec='seconds' if local.second else 'minutes')
