# SPDX-License-Identifier: Apache-2.0
"""Measure the index beside its peers; README.md here says how to read it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import os
import pathlib
import sys
from typing import Any

from rich.console import Console

from benchmarks import churn
from benchmarks import contest
from benchmarks import dense
from benchmarks import fleet
from benchmarks import holds
from benchmarks import lease_requests
from benchmarks import ledger
from benchmarks import measure
from benchmarks import offers
from benchmarks import past
from benchmarks import replica
from benchmarks import report
from benchmarks import scale
from benchmarks import series
from benchmarks import targets
from benchmarks import timeline
from benchmarks.measure import Result
from benchmarks.measure import Target
from benchmarks.measure import WrongAnswer
from blazar_sched import ext

Say = Callable[[str], None]

PARTS = (
    'index', 'scale', 'dense', 'churn', 'scheduler', 'replica', 'fleet',
    'ledger', 'relocation', 'offers', 'series',
    'lease_requests', 'timeline', 'past', 'holds',
)

# Columns, where there is no terminal to ask.
WIDTH = 180
# The load before we begin that a fair measurement allows.
BUSY = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; return the exit status."""
    options = _parser().parse_args(arguments)
    screen = Console(width=None if sys.stdout.isatty() else WIDTH)
    if not ext.is_compiled():
        screen.print('The compiled index is not there, or not wanted.')
        return 1
    load = os.getloadavg()[0]
    if load > BUSY:
        screen.print(
            f'The machine is busy (load {load:.1f}): what takes long is '
            'interrupted more, so slow peers look slower than they are.'
        )
    wanted = list(targets.TARGETS)
    results: list[Result] = []
    status = 0
    before = measure.machine_time()
    try:
        with _progress() as say:
            for own in _measured(options, wanted, say, screen.print):
                results.append(own)
    except WrongAnswer as wrong:
        screen.print(f'[red]Wrong answer[/] {wrong}')
        return 1
    except KeyboardInterrupt:
        screen.print('Interrupted; this is what there is so far.')
        status = 130
    except Exception:
        # The figures of an hour are not lost with those that are missing.
        screen.print_exception()
        status = 1
    verdicts = list(report.judged(report.values(results), wanted))
    screen.print(report.results_table(results, verdicts))
    missed = [verdict for verdict in verdicts if not verdict.met]
    for verdict in missed:
        work, subject = verdict.target.work, verdict.target.subject
        screen.print(f'{work}, {subject}: {verdict}')
    screen.print(
        f'{len(verdicts) - len(missed)} of {len(verdicts)} targets met. '
        f'20 million additions took {before:.2g} s before and '
        f'{measure.machine_time():.2g} s after.'
    )
    _keep(options, results, screen)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser('python -m benchmarks')
    parser.add_argument('--hosts', type=int, default=10000)
    parser.add_argument(
        '--allocations', type=int, default=100, help='of each host'
    )
    parser.add_argument('--seed', type=int, default=7)
    parser.add_argument(
        '--budget', type=float, default=2, metavar='SECONDS',
        help='for each work of each subject',
    )
    parser.add_argument(
        '--parts', type=_some_of(PARTS), default=PARTS,
        help=f'some of {",".join(PARTS)}; all by default',
    )
    parser.add_argument(
        '--only', type=_some_of(contest.SUBJECTS), default=contest.SUBJECTS,
        help=f'the index and some of {",".join(contest.SUBJECTS)}',
    )
    for name, text in (
        ('json', 'keep the results'),
        ('compare', 'show kept results beside the new ones'),
        ('plot', 'draw the medians; needs matplotlib'),
    ):
        parser.add_argument(
            f'--{name}', type=pathlib.Path, metavar='FILE', help=text
        )
    return parser


def _some_of(names: Any) -> Callable[[str], list[str]]:
    """Return what reads a list of names, in any order, with commas."""
    def read(text: str) -> list[str]:
        given = text.split(',')
        for name in given:
            if name not in names:
                raise argparse.ArgumentTypeError(f'there is no {name!r}')
        return given

    return read


@contextlib.contextmanager
def _progress() -> Iterator[Say]:
    """Say what goes on: in one line of a terminal, else line by line."""
    screen = Console(stderr=True)
    if screen.is_terminal:
        with screen.status('') as status:
            yield status.update
    else:
        yield screen.print


def _measured(
    options: argparse.Namespace, wanted: list[Target], say: Say, note: Say
) -> Iterator[Result]:
    """Yield the results of each part that is asked for.

    :param wanted: takes the targets of a part that has its own.
    :param note: is told what was skipped.
    """
    size = options.hosts, options.allocations, options.seed
    budget = options.budget
    yield from _of_index(options, say, note)
    if 'scheduler' in options.parts:
        yield from _scheduler(options, wanted, say, note)
    if 'replica' in options.parts:
        wanted += replica.TARGETS
        yield from replica.run(*size, say)
    if 'fleet' in options.parts:
        wanted += fleet.TARGETS
        yield from fleet.run(say)
    for name, part in (
        ('ledger', ledger), ('offers', offers), ('series', series),
        ('lease_requests', lease_requests), ('timeline', timeline),
        ('past', past), ('holds', holds),
    ):
        if name in options.parts:
            wanted += part.TARGETS
            yield from part.run(options.hosts, options.seed, budget, say)
    if 'relocation' in options.parts:
        yield from _relocation(options, wanted, say, note)


def _of_index(
    options: argparse.Namespace, say: Say, note: Say
) -> Iterator[Result]:
    size = options.hosts, options.allocations, options.seed
    budget = options.budget
    if 'index' in options.parts:
        names = _present(options.only, note)
        yield from contest.run(names, *size, budget, say)
    if 'scale' in options.parts:
        yield from scale.run(options.hosts, options.seed, budget, say)
    if 'dense' in options.parts:
        tenth = options.hosts * options.allocations // 10
        yield from dense.run(max(tenth, 1000), options.seed, budget, say)
    if 'churn' in options.parts:
        yield from churn.run(*size, say)


def _present(only: Sequence[str], note: Say) -> list[str]:
    """Return the subjects asked for that can be had, the index first."""
    names = []
    for name in contest.SUBJECTS:
        lacking = contest.missing(name)
        if name != 'index' and name not in only:
            continue
        if lacking:
            note(f'Skipped {name}: there is no {lacking}.')
        else:
            names.append(name)
    return names


def _scheduler(
    options: argparse.Namespace, wanted: list[Target], say: Say, note: Say
) -> Iterator[Result]:
    try:
        from benchmarks import scheduler
    except ImportError as error:
        note(f'Skipped scheduler: {error}.')
        return
    wanted += scheduler.TARGETS
    sizes = [options.hosts // part for part in (10, 2, 1)]
    yield from scheduler.run(options.budget, sizes, say)


def _relocation(
    options: argparse.Namespace, wanted: list[Target], say: Say, note: Say
) -> Iterator[Result]:
    try:
        from benchmarks import relocation
    except ImportError as error:
        note(f'Skipped relocation: {error}.')
        return
    wanted += relocation.TARGETS
    yield from relocation.run(options.hosts, options.budget, say)


def _keep(
    options: argparse.Namespace, results: list[Result], screen: Console
) -> None:
    """Do with the results what the options say."""
    settings = {
        name: getattr(options, name)
        for name in ('hosts', 'allocations', 'seed')
    }
    if options.compare:
        others, old = report.load(options.compare)
        screen.print(report.comparison(old, results))
        if others != settings:
            screen.print(f'The old ones are of other settings: {others}.')
    if options.json:
        report.save(options.json, settings, results)
    if options.plot:
        try:
            report.plot(options.plot, results)
        except ImportError as error:
            screen.print(f'No picture: {error}.')


if __name__ == '__main__':
    sys.exit(main())
