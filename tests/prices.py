# SPDX-License-Identifier: Apache-2.0
"""What each ring of the house costs: ``python -m tests.prices``.

The kernel is what a newcomer reads to change a promise, the core what every
cloud runs, a part what a cloud may leave out, and the client a distribution of
its own. The command fails if one has
more lines than BUDGETS allows, or more options than MAX_OPTIONS, so that
growth is a decision: change the figure in the commit that needs it, and say
why.
"""

import dataclasses
import pathlib
import sys

from blazar_sched.conf import client
from blazar_sched.conf import service as service_conf
from blazar_sched.service import parts

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / 'blazar_sched'
CLIENT = ROOT / 'client'
KERNEL = (
    'ext', 'domain', 'replica', 'placing', 'service/ledger',
    'service/booking', 'service/events',
)
SOURCES = {'.py', '.pyi', '.js', '.css', '.html'}
# The most lines of the product and of the tests, blank lines and comments
# included.
BUDGETS = {
    'kernel': (25_510, 0),
    'core': (53_470, 83_980),
    'blazar': (3_050, 2_200),
    'calendar': (450, 400),
    'floating_ip': (1_700, 3_000),
    'limit': (1_200, 2_950),
    'maintenance': (1_200, 1_050),
    'notify': (1_500, 2_150),
    'offer': (1_400, 1_050),
    'ops': (1_200, 1_000),
    'page': (5_110, 2_510),
    'product': (600, 500),
    'report': (1_250, 1_050),
    'request': (1_650, 1_500),
    'series': (1_950, 2_200),
    'simulate': (3_300, 1_600),
    'timeline': (1_050, 850),
    'client': (3_250, 2_950),
    'all': (82_980, 110_165),
}
# The most options of the core, those of keystoneauth apart.
MAX_OPTIONS = 80


@dataclasses.dataclass(frozen=True, slots=True)
class Price:
    """What a ring or a part has."""

    name: str
    lines: int
    files: int
    test_lines: int
    options: int | None = None


def _size(*folders: pathlib.Path) -> tuple[int, int]:
    """Return the number of lines and the number of files."""
    files = {
        path for folder in folders for path in folder.rglob('*')
        if path.suffix in SOURCES and path.name != 'index.d.ts'
    }
    return sum(len(p.read_bytes().splitlines()) for p in files), len(files)


def prices() -> list[Price]:
    """Return the prices of the kernel, the core with it, and each other."""
    found = []
    for name in parts.installed():
        lines, files = _size(PACKAGE / 'parts' / name)
        tests, _ = _size(ROOT / 'tests/parts' / name)
        found.append(Price(name, lines, files, tests))
    tests, _ = _size(ROOT / 'tests/client')
    found.append(Price('client', *_size(CLIENT), tests))
    kernel, kernel_files = _size(*(PACKAGE / name for name in KERNEL))
    whole, files = _size(PACKAGE, CLIENT)
    tests, _ = _size(ROOT / 'tests')
    of_keystoneauth = {each.name for each in client.options()}
    options = sum(
        group not in service_conf.CLIENTS or each.name not in of_keystoneauth
        for group in service_conf.GROUPS for each in group.opts
    )
    return [
        Price('kernel', kernel, kernel_files, 0),
        Price(
            'core', whole - sum(each.lines for each in found),
            files - sum(each.files for each in found),
            tests - sum(each.test_lines for each in found), options,
        ),
        *found,
        Price('all', whole, files, tests, options),
    ]


def main() -> int:
    excess = []
    print(f'{"":12}{"lines":>8}{"files":>8}{"tests":>8}{"options":>8}')
    for each in prices():
        print(
            f'{each.name:12}{each.lines:8}{each.files:8}{each.test_lines:8}'
            f'{"" if each.options is None else each.options:>8}'
        )
        lines, tests = BUDGETS.get(each.name, (0, 0))
        if each.lines > lines or each.test_lines > tests:
            excess.append(
                f'{each.name}: {lines} lines and {tests} of tests are allowed'
            )
        if (each.options or 0) > MAX_OPTIONS:
            excess.append(f'{each.name}: {MAX_OPTIONS} options are allowed')
    for line in excess:
        print(line, file=sys.stderr)
    return len(excess) > 0


if __name__ == '__main__':
    sys.exit(main())
