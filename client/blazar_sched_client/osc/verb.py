# SPDX-License-Identifier: Apache-2.0
"""The verbs that all nouns have, and what a command is made of.

A command names its noun, of which it has its options and columns. The help of
a command is its docstring.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import time
from typing import Any
from typing import ClassVar

from openstack import exceptions as sdk_exceptions
from osc_lib import exceptions
from osc_lib import utils
from osc_lib.command import command

from blazar_sched_client._base import Resource
from blazar_sched_client.osc import column
from blazar_sched_client.osc import option
from blazar_sched_client.osc import plugin
from blazar_sched_client.osc import times
from blazar_sched_client.osc.option import Option

Columns = tuple[Sequence[str], Sequence[Any]]


class Command(command.Command):
    """A command of the reservation service.

    :cvar resource: what the command is about
    :cvar reads: the list of the resource with the fields of the request
    :cvar options: what the command reads beside these and the times' zone
    :cvar unread: fields that are not read
    :cvar arguments: fields that are read by their position
    :cvar required: other fields without which there is no request
    """

    resource: ClassVar[type[Resource]] = Resource
    reads: ClassVar[str] = ''
    options: ClassVar[tuple[Option, ...]] = ()
    unread: ClassVar[tuple[str, ...]] = ()
    arguments: ClassVar[tuple[str, ...]] = ()
    required: ClassVar[tuple[str, ...]] = ()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        for name, settings in (*self.asked(), option.TIMES):
            parser.add_argument(name, **settings)
        return parser

    def asked(self) -> list[Option]:
        """Return what the command reads."""
        names = getattr(self.resource, self.reads) if self.reads else ()
        found = {
            name: option.of(self.resource, name)
            for name in names if name not in self.unread
        }
        for name in found.keys() & {*self.arguments}:
            found[name] = (name, found[name][1])
        for name in self.required:
            flag, settings = found[name]
            found[name] = (flag, {**settings, 'required': True})
        return [*found.values(), *self.options]

    def run(self, parsed_args: argparse.Namespace) -> int:
        try:
            return super().run(parsed_args)
        except sdk_exceptions.SDKException as error:
            raise exceptions.CommandError(
                _refusal(error, parsed_args.times)
            ) from error

    @property
    def client(self) -> Any:
        return getattr(self.app.client_manager, plugin.API_NAME)

    def read(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the fields for which the command has a value."""
        values = {}
        for flag, settings in self.asked():
            name = settings.get('dest', flag.lstrip('-').replace('-', '_'))
            values[name] = getattr(parsed_args, name)
        return {
            name: self.time(name, value, parsed_args.times)
            if isinstance(value, times.Time) else value
            for name, value in values.items()
            if value is not None and value is not False
        }

    def time(
        self, name: str, text: times.Time, zone: times.Zone
    ) -> str | None:
        """Return a time of the user; show the time that words mean."""
        found = times.read(text, zone)
        if found and found != text and not times.has_year(text):
            self.app.stderr.write(f'{name}: {times.show(found, zone)}\n')
        return found


class Noun(Command):
    """A command about resources of one kind."""

    @property
    def hidden(self) -> tuple[str, ...]:
        """Return the attributes that are not shown."""
        return self.resource._hidden

    def call(self, verb: str, *args: Any, **attrs: Any) -> Any:
        """Call the method of the client for the resource."""
        method = getattr(self.client, f'{verb}_{self.resource._noun}')
        return method(*args, **attrs)

    def find(self, name_or_id: str) -> Any:
        return self.call('find', name_or_id, ignore_missing=False)

    def show(
        self, found: Resource, parsed_args: argparse.Namespace
    ) -> Columns:
        """Return what a command shows of a resource."""
        absent = [name for name in ('id', 'name') if found[name] is None]
        _, names = utils.get_osc_show_columns_for_sdk_resource(
            found, {}, ['location', 'idempotency_key', *absent, *self.hidden]
        )
        return names, [
            column.column(found[name], parsed_args.times) for name in names
        ]


class Of(Noun):
    """A command about a resource, which has a name or an ID.

    :cvar count: '+' for a command about several resources
    """

    count: ClassVar[str | None] = None

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        noun = self.resource._noun.replace('_', '-')
        parser.add_argument(
            'which', metavar=f'<{noun}>', nargs=self.count, help='Name or ID'
        )
        return parser


class List(Noun, command.Lister):
    """Lists resources."""

    reads = '_query'

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        find = getattr(self.client, self.resource._nouns)
        found = find(**self.read(parsed_args))
        return rows(self.resource._columns, found, parsed_args)


class Show(Of, command.ShowOne):
    """Shows a resource."""

    def take_action(self, parsed_args: argparse.Namespace) -> Columns:
        found = self.find(parsed_args.which)
        # A resource in a list has less to show.
        return self.show(self.call('get', found.id), parsed_args)


class Create(Noun, command.ShowOne):
    """Creates a resource, and shows it."""

    reads = '_created'
    arguments = ('name',)

    def take_action(self, parsed_args: argparse.Namespace) -> Columns:
        made = self.call('create', **self.read(parsed_args))
        return self.show(made, parsed_args)


class Set(Of, command.ShowOne):
    """Changes a resource, and shows it."""

    reads = '_changed'

    def take_action(self, parsed_args: argparse.Namespace) -> Columns:
        values = self.read(parsed_args)
        if not values.keys() - {'dry_run'}:
            raise exceptions.CommandError(
                'nothing would change: name an option with a new value'
            )
        id_ = self.find(parsed_args.which).id
        return self.show(self.call('update', id_, **values), parsed_args)


class Delete(Of):
    """Deletes resources."""

    count = '+'

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        for which in parsed_args.which:
            self.call('delete', self.find(which).id, ignore_missing=False)


class Waiting(Noun):
    """A command that can wait until its resource has a status.

    :cvar goal: the status
    :cvar failures: statuses from which the resource does not reach it
    """

    goal: ClassVar[str]
    failures: ClassVar[tuple[str, ...]]

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--wait', action='store_true', help=f'Wait for {self.goal}'
        )
        return parser

    def show(
        self, found: Resource, parsed_args: argparse.Namespace
    ) -> Columns:
        if parsed_args.wait and not getattr(parsed_args, 'dry_run', False):
            found = self._wait(found)
        return super().show(found, parsed_args)

    def _wait(self, found: Any) -> Any:
        """Wait, and tell the status and the time that has passed.

        A terminal has one line, which changes; a file has a line for each
        status.
        """
        begun = time.monotonic()
        stream = self.app.stderr
        told = None

        def tell(_: int = 0) -> None:
            nonlocal told
            passed = time.monotonic() - begun
            line = f'{found.name}: {found.status}, {passed:.0f} s'
            if stream.isatty():
                stream.write(f'\r{line:<60}')
            elif found.status != told:
                stream.write(f'{line}\n')
            stream.flush()
            told = found.status

        tell()
        try:
            return self.client.wait_for_status(
                found, self.goal, list(self.failures), interval=2,
                callback=tell,
            )
        finally:
            tell()
            if stream.isatty():
                stream.write('\n')


def rows(
    names: Sequence[str], found: Iterable[Any], parsed_args: Any
) -> tuple[Sequence[str], Iterator[Any]]:
    """Return the columns and the rows of a list."""
    return names, (
        [column.column(each.get(name), parsed_args.times) for name in names]
        for each in found
    )


def _obstacles(answer: dict[str, Any], zone: times.Zone) -> str:
    """Return what a refusal says to be in the way."""
    words = [_obstacle(each, zone) for each in answer['in_the_way']]
    if answer['in_the_way_left_out']:
        words.append(f'{answer["in_the_way_left_out"]} more')
    return ', '.join(words)


def _obstacle(each: dict[str, Any], zone: times.Zone) -> str:
    id_ = each['lease_id'] or each['server_id']
    words: str = each['kind']
    if each['name'] or id_:
        names = (each['name'], f'({id_})' if id_ else None)
        words = ' '.join(filter(None, (
            'your' if each['mine'] else None, words, *names,
        )))
    elif words in ('lease', 'server'):
        words += 's of other projects'
    count = each['hosts']
    words += f' on {each["host"] or f"{count} host" + "s" * (count > 1)}'
    if each['end_date']:
        words += f' until {times.show(each["end_date"], zone)}'
    return words


def _refusal(error: sdk_exceptions.SDKException, zone: times.Zone) -> str:
    """Return the words of the service, if it has refused.

    The words include what is in the way, and the offer.
    """
    response = getattr(error, 'response', None)
    if response is None:
        return str(error)
    words = str(response.reason)
    try:
        answer = dict(response.json())
    except (ValueError, TypeError):
        return words
    if answer.get('in_the_way'):
        words += f'; in the way: {_obstacles(answer, zone)}'
    offer = answer.get('offer')
    if offer is None:
        return words
    if offer['available']:
        words += f'; {offer["available"]} would find room'
    if offer['start_date'] and offer['end_date']:
        start = times.show(offer['start_date'], zone)
        end = times.show(offer['end_date'], zone)
        words += f'; there is room from {start} to {end}'
    return words
