# SPDX-License-Identifier: Apache-2.0
"""The console script, which finds a subcommand and runs it."""

import argparse
from collections.abc import Container
from collections.abc import Sequence
import importlib
import importlib.metadata
import os
import sys
import types
import warnings

from oslo_config import cfg

from blazar_sched.cmd import service
from blazar_sched.domain import exception

# A command is imported on use: `status` must work where a part is missing.
COMMANDS = {
    'serve': 'run the REST API and the manager in one process',
    'api': 'run the REST API',
    'manager': 'run the manager',
    'db': 'create, check or import the database',
    'why': 'show why hosts were rejected for a server',
    'relocations': 'show the instances that have to be moved, and where to',
    'replicas': 'show the version of each manager, API and scheduler worker',
    'status': 'show the installed versions, or check an upgrade',
    'simulate': 'compare scheduling policies by simulating a trace',
}


def parser(asked: Container[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser, with the arguments of the requested commands."""
    top = argparse.ArgumentParser(
        prog='blazar-sched', description='Reservation service for Nova.'
    )
    top.add_argument(
        '--version',
        action='version',
        version=f'%(prog)s {importlib.metadata.version("blazar-sched")}',
    )
    service.add_arguments(top)
    commands = top.add_subparsers(dest='command', required=True)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name in asked:
            _module(name).add_arguments(command)
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
    return parser(rest).parse_args(rest, given)


def _module(name: str) -> types.ModuleType:
    return importlib.import_module(f'blazar_sched.cmd.{name}')


def main(argv: Sequence[str] | None = None) -> int:
    # oslo.messaging imports eventlet if it is installed, without any use.
    warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
    # Eventlet's DNS resolver is not used either, and takes most of the time
    # of the import.
    os.environ.setdefault('EVENTLET_NO_GREENDNS', 'yes')
    argv = sys.argv[1:] if argv is None else argv
    args = parse(argv)
    try:
        status: int = _module(args.command).run(args)
        return status
    except (cfg.Error, exception.BlazarSchedError) as e:
        print(f'blazar-sched: {exception.reason(e)}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
