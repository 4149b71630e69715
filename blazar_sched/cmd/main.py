# SPDX-License-Identifier: Apache-2.0
"""The console script, which finds a subcommand and runs it."""

import argparse
from collections.abc import Sequence
import importlib
import importlib.metadata
import os
import sys
import warnings

from oslo_config import cfg

from blazar_sched.cmd import service
from blazar_sched.domain import exception

# The text and the module of each command of the core. A module is imported on
# use, as are the commands of parts: `status` must work where a package is
# missing.
COMMANDS = {
    'serve': (
        'run the REST API and the manager in one process',
        'blazar_sched.cmd.serve',
    ),
    'api': ('run the REST API', 'blazar_sched.cmd.api'),
    'manager': ('run the manager', 'blazar_sched.cmd.manager'),
    'db': ('create, check or import the database', 'blazar_sched.cmd.db'),
    'status': (
        'show the installed versions, or check an upgrade',
        'blazar_sched.cmd.status',
    ),
}


def commands(asked: str | None = None) -> dict[str, tuple[str, str]]:
    """Return the commands of the core, and of the parts unless not needed.

    :param asked: the command that is needed, by default all
    """
    if asked in COMMANDS:
        return COMMANDS
    from blazar_sched.service import parts

    return COMMANDS | dict(
        each for more in parts.each('commands', 'COMMANDS')
        for each in more.items()
    )


def parser(asked: str | None = None) -> argparse.ArgumentParser:
    """Return the parser, with the arguments of the requested command.

    :param asked: the command, by default all commands
    """
    top = argparse.ArgumentParser(
        prog='blazar-sched', description='Reservation service for Nova.'
    )
    top.add_argument(
        '--version', action='version',
        version=f'%(prog)s {importlib.metadata.version("blazar-sched")}',
    )
    service.add_arguments(top)
    subparsers = top.add_subparsers(dest='command', required=True)
    for name, (text, path) in commands(asked).items():
        command = subparsers.add_parser(name, help=text, description=text)
        if asked in (None, name):
            module = importlib.import_module(path)
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return top


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line.

    Options that name the configuration may precede or follow the command, and
    are in `config`: arguments for conf.service.load.
    """
    files = argparse.ArgumentParser(
        prog='blazar-sched', add_help=False, allow_abbrev=False
    )
    service.add_arguments(files)
    given, rest = files.parse_known_args(argv, argparse.Namespace(config=[]))
    # What is left and is no command, such as --help, ends the program.
    return parser(rest[0] if rest else '').parse_args(rest, given)


def main(argv: Sequence[str] | None = None) -> int:
    # oslo.messaging imports eventlet if it is installed, without any use.
    warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
    # Eventlet's DNS resolver is not used either, and takes most of the time
    # of the import.
    os.environ.setdefault('EVENTLET_NO_GREENDNS', 'yes')
    argv = sys.argv[1:] if argv is None else argv
    args = parse(argv)
    try:
        status: int = args.run(args)
        return status
    except (cfg.Error, exception.BlazarSchedError) as e:
        print(f'blazar-sched: {exception.reason(e)}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
