# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.simulation``: see the package."""

import argparse
import sys

import rich.progress

from tests.simulation import play


def main():
    parser = argparse.ArgumentParser(prog='python -m tests.simulation')
    parser.add_argument('--seeds', type=int, default=1000, metavar='N')
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--seed', type=int, help='play this one and tell')
    args = parser.parse_args()
    player = play.Player()
    try:
        if args.seed is not None:
            return tell(player, args.seed)
        return search(player, range(args.first, args.first + args.seeds))
    finally:
        player.close()


def tell(player, seed):
    trace, broken = player.play(seed)
    print('\n'.join(trace))
    print(broken or 'every promise held')
    return 1 if broken else 0


def search(player, seeds):
    failed = []
    for seed in rich.progress.track(seeds, 'seeds'):
        _, broken = player.play(seed)
        if broken:
            failed.append(seed)
            print(f'seed {seed}: {broken.splitlines()[-1]}', flush=True)
    print(f'{len(seeds)} seeds played, {len(failed)} failed: {failed}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
