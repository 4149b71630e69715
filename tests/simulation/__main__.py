# SPDX-License-Identifier: Apache-2.0
"""The command ``python -m tests.simulation``: see the package."""

import argparse
import multiprocessing
import sys

import rich.progress

from tests.simulation import controls
from tests.simulation import play

_player = None


def main():
    parser = argparse.ArgumentParser(prog='python -m tests.simulation')
    parser.add_argument('--seeds', type=int, default=1000, metavar='N')
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument(
        '--jobs', type=int, default=2, metavar='N',
        help='processes that play at once',
    )
    parser.add_argument('--seed', type=int, help='play this one and tell')
    parser.add_argument(
        '--control', choices=sorted(controls.ALL),
        help='switch this mend off, and play the worlds that need it',
    )
    args = parser.parse_args()
    control = controls.ALL.get(args.control, controls.NONE)
    with control.off():
        if args.seed is not None:
            return tell(args.seed, control)
        seeds = range(args.first, args.first + args.seeds)
        return search(seeds, args.jobs, control)


def tell(seed, control):
    player = play.Player()
    try:
        trace, broken = player.play(seed, control.features, control.often)
    finally:
        player.close()
    print('\n'.join(trace))
    print(broken or 'every promise held')
    return 1 if broken else 0


def search(seeds, jobs, control):
    failed = []
    # The processes are forked, so that a patch is applied in all of them.
    context = multiprocessing.get_context('fork')
    with (
        context.Pool(jobs, _prepare) as pool,
        rich.progress.Progress() as progress,
    ):
        task = progress.add_task('seeds', total=len(seeds))
        asked = [(seed, control.features, control.often) for seed in seeds]
        for seed, broken in pool.imap_unordered(_play, asked):
            progress.advance(task)
            if broken:
                failed.append(seed)
                print(f'seed {seed}: {broken.splitlines()[-1]}', flush=True)
    failed.sort()
    print(f'{len(seeds)} seeds played, {len(failed)} failed: {failed}')
    return 1 if failed else 0


def _prepare():
    global _player
    _player = play.Player()


def _play(asked):
    return asked[0], _player.play(*asked)[1]


if __name__ == '__main__':
    sys.exit(main())
