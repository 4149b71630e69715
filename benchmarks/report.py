# SPDX-License-Identifier: Apache-2.0
"""What was measured, as a table, a file and a picture."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import json
import pathlib
from typing import Any

from rich import table

from benchmarks import targets
from benchmarks.measure import Result
from benchmarks.measure import Target

Key = tuple[str, str]
Values = dict[Key, float]

UNITS = {
    's': ((1, 's'), (1e-3, 'ms'), (1e-6, 'µs'), (1e-9, 'ns')),
    'B': ((2**20, 'MiB'), (2**10, 'KiB'), (1, 'B')),
    '': ((1, ''),),
}


def values(results: Iterable[Result]) -> Values:
    """Return the results' figures by work and subject."""
    return {(own.work, own.subject): own.value for own in results}


def to_the_index(known: Values, key: Key) -> float | None:
    """Return a subject's value as a multiple of the index's."""
    base = known.get((key[0], targets.INDEX))
    return None if base is None or not base else known[key] / base


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A target and what came of it."""

    target: Target
    got: float
    met: bool

    @property
    def place(self) -> Key:
        """The row that it is shown on: the peer's, if in the same work."""
        against = self.target.against
        if against and against[0] == self.target.work:
            return against
        return self.target.work, self.target.subject

    def __str__(self) -> str:
        colour, word = ('green', 'met') if self.met else ('red', 'missed')
        return f'{self._sentence()}: [{colour}]{word}[/]'

    def _sentence(self) -> str:
        target = self.target
        if target.against is None:
            return f'at most {target.at_most:g}, is {self.got:.3g}'
        work, subject = target.against
        if work == target.work:
            return (
                f'{times(target.ratio)} of {target.subject}, '
                f'is {times(self.got)}'
            )
        return (
            f'at most {times(1 / target.ratio)} of "{work}", '
            f'is {times(1 / self.got)}'
        )


def judged(known: Values, wanted: Iterable[Target]) -> Iterator[Verdict]:
    """Yield a verdict on every target whose values were measured."""
    for target in wanted:
        value = known.get((target.work, target.subject))
        if value is None:
            continue
        if target.against is None:
            yield Verdict(target, value, value <= target.at_most)
        elif target.against in known:
            got = known[target.against] / value
            yield Verdict(target, got, got >= target.ratio)


def results_table(
    results: Sequence[Result], verdicts: Iterable[Verdict]
) -> table.Table:
    """Return medians, ratios to the index, and targets."""
    shown = table.Table('work', 'subject')
    for heading in ('median', 'to the index', 'runs'):
        shown.add_column(heading, justify='right')
    shown.add_column('target')
    shown.add_column('note')
    known = values(results)
    places: dict[Key, list[str]] = {}
    for verdict in verdicts:
        places.setdefault(verdict.place, []).append(str(verdict))
    for own, first, last in _by_work(results):
        key = own.work, own.subject
        shown.add_row(
            own.work if first else '', own.subject, figure(own),
            times(to_the_index(known, key)), str(own.runs),
            '\n'.join(places.get(key, ())), own.note, end_section=last,
        )
    return shown


def comparison(old: Sequence[Result], new: Sequence[Result]) -> table.Table:
    """Return two runs side by side.

    The last column says how the ratio to the index changed, which the speed
    of the machine does not touch: above 1 the index gained on the peer.
    """
    shown = table.Table('work', 'subject')
    for heading in ('old', 'new', 'old ratio', 'new ratio', 'new / old'):
        shown.add_column(heading, justify='right')
    before = {(own.work, own.subject): own for own in old}
    was, now = values(old), values(new)
    common = [own for own in new if (own.work, own.subject) in before]
    for own, first, last in _by_work(common):
        key = own.work, own.subject
        ratios = to_the_index(was, key), to_the_index(now, key)
        change = ratios[1] / ratios[0] if all(ratios) else None
        shown.add_row(
            own.work if first else '', own.subject, figure(before[key]),
            figure(own), *map(times, ratios), times(change), end_section=last,
        )
    return shown


def _by_work(results: Iterable[Result]) -> Iterator[tuple[Result, bool, bool]]:
    """Yield results of one work together, and whether first or last of it."""
    works: dict[str, list[Result]] = {}
    for own in results:
        works.setdefault(own.work, []).append(own)
    for group in works.values():
        for i, own in enumerate(group):
            yield own, i == 0, i == len(group) - 1


def times(ratio: float | None) -> str:
    """Return a ratio with three digits that mean something."""
    if ratio is None:
        return ''
    return f'{ratio:,.0f}×' if ratio >= 100 else f'{ratio:.3g}×'


def figure(own: Result) -> str:
    """Return a value in a unit that makes it short."""
    units = UNITS[own.unit]
    size, name = next((u for u in units if own.value >= u[0]), units[-1])
    return f'{own.value / size:.3g} {name}'.rstrip()


def save(
    path: pathlib.Path, settings: dict[str, Any], results: Iterable[Result]
) -> None:
    path.write_text(json.dumps({
        'settings': settings,
        'results': [dataclasses.asdict(own) for own in results],
    }, indent=1) + '\n')


def load(path: pathlib.Path) -> tuple[dict[str, Any], list[Result]]:
    """Return the settings and results of a file that ``save`` wrote."""
    kept = json.loads(path.read_text())
    return kept['settings'], [Result(**own) for own in kept['results']]


def plot(path: pathlib.Path, results: Iterable[Result]) -> None:
    """Draw the medians as bars on a logarithmic scale.

    :raises ImportError: there is no matplotlib.
    """
    from matplotlib import figure as canvas

    shown = [own for own, _, _ in _by_work(results) if own.unit == 's']
    subjects = list(dict.fromkeys(own.subject for own in shown))
    picture = canvas.Figure(figsize=(10, 1 + len(shown) / 5))
    axes = picture.add_subplot(xscale='log', xlabel='seconds')
    axes.barh(
        [f'{own.work}: {own.subject}' for own in shown],
        [own.value for own in shown],
        color=[f'C{subjects.index(own.subject)}' for own in shown],
    )
    axes.invert_yaxis()
    picture.savefig(path, bbox_inches='tight')
