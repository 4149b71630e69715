# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched status`: what is installed and which index runs."""

import argparse
import importlib.metadata
import sys

import rich.console
import rich.table

from blazar_sched import ext


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return 'not installed'


def run(args: argparse.Namespace) -> int:
    table = rich.table.Table(show_header=False)
    index = 'compiled' if ext.is_compiled() else 'plain Python (slow)'
    table.add_row('blazar-sched', _version('blazar-sched'))
    table.add_row('timeline index', index)
    table.add_row('python', sys.version.split()[0])
    table.add_row('nova', _version('nova'))
    rich.console.Console().print(table)
    return 0
