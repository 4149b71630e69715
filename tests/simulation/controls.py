# SPDX-License-Identifier: Apache-2.0
"""Negative controls: with a fix undone, the simulation must find the fault."""

from collections.abc import Callable
import contextlib
import dataclasses
import re
import shutil
import sqlite3
from unittest import mock

from blazar_sched.domain import event
from blazar_sched.domain import flavor
from blazar_sched.domain import host
from blazar_sched.domain import inventory
from blazar_sched.domain import states
from blazar_sched.parts.request import placing
from blazar_sched.parts.request.manager import LeaseRequests
from blazar_sched.parts.series import manager as series
from blazar_sched.parts.series import models as series_models
from blazar_sched.placing import displacement
from blazar_sched.placing import group_limit
from blazar_sched.placing import lease_placing
from blazar_sched.placing import relocation as paths
from blazar_sched.replica import accounting
from blazar_sched.replica import batch
from blazar_sched.replica import present
from blazar_sched.replica import record
from blazar_sched.replica import server_reservation
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service.before_end import snapshot
from blazar_sched.service.booking import draft
from blazar_sched.service.booking import lease
from blazar_sched.service.events import transition
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import reader
from blazar_sched.service.ledger import tx
from blazar_sched.service.resources import lifetime
from blazar_sched.service.resources import on_hosts
from blazar_sched.service.resources import vacating
from blazar_sched.service.upkeep import relocation
from blazar_sched.worker import admission
from blazar_sched.worker import magnetic
from blazar_sched.worker import request
from blazar_sched.worker import room
from tests.simulation import ending
from tests.simulation.cloud import servers
from tests.simulation.features import AWAY
from tests.simulation.features import BEFORE_END
from tests.simulation.features import CLEANING
from tests.simulation.features import COLD
from tests.simulation.features import FAULTS
from tests.simulation.features import FORCED
from tests.simulation.features import GROUPS
from tests.simulation.features import LARGE
from tests.simulation.features import LEAVING
from tests.simulation.features import LIFETIMES
from tests.simulation.features import MAGNETIC
from tests.simulation.features import MAINTENANCE
from tests.simulation.features import OFFERS
from tests.simulation.features import ON_END
from tests.simulation.features import PREEMPTIBLE
from tests.simulation.features import RELOCATION
from tests.simulation.features import REQUESTS
from tests.simulation.features import RESIZES
from tests.simulation.features import SERIES
from tests.simulation.features import SHARING
from tests.simulation.features import SPARES
from tests.simulation.features import UNSEEN


@dataclasses.dataclass(frozen=True)
class Control:
    """A fix that can be undone.

    :ivar features: the features of a world in which the fault appears
    :ivar words: a regular expression for the message of the fault
    :ivar first: the first seed to try
    :ivar off: returns a context in which the fix is undone
    :ivar often: the names of actions that provoke the fault
    """

    features: tuple[str, ...] | None
    words: str
    first: int = 0
    off: Callable = contextlib.nullcontext
    often: tuple[str, ...] = ()

    def finds(self, broken):
        """Tell whether a message reports the fault."""
        return broken is not None and re.search(self.words, broken, re.DOTALL)


NONE = Control(None, '')


def _patched(*patches):
    """Return a context with all given patches."""
    stack = contextlib.ExitStack()
    for patch in patches:
        stack.enter_context(patch)
    return stack


def _given_up_soon():
    """The end of a world has fewer rounds: still more than with the fix."""
    return mock.patch.object(ending, 'ROUNDS', 60)


def _images_for_any_end():
    """An image of an earlier end counts for the current end."""
    return mock.patch.object(
        snapshot, 'image_mark', lambda id_, ending: {flavor.RESERVATION: id_}
    )


def _no_room_beside_preemptible():
    """Preemptible servers count for nothing while a window is open."""
    return mock.patch.object(
        room.RoomNow, 'passing', lambda step, host_states: host_states
    )


def _groups_not_limited():
    """Hosts are selected without regard to the group limits."""
    return mock.patch.object(
        group_limit, 'pick',
        lambda room, candidates, slot, select, *others: select(candidates),
    )


def _all_leases_leave():
    """A server gets a host that its leases cannot leave."""
    def passing(self, index, host_states, end, amounts):
        pending = tuple(
            each.id for each in self.replica.reservations.values()
            if each.start > self.now
        )
        return self.replica.present.select_with(
            index, host_states, self.now, end, amounts, self.request.own_id,
            [0] * len(amounts) * len(host_states), pending,
        )

    return mock.patch.object(room.Room, 'with_leavable', passing)


def _announced_at_the_start():
    """A short lease is announced at the start, before the start is done."""
    real = draft._before_end

    def before_end(conf, asked, window):
        at = real(conf, asked, window)
        short = window.duration <= 60 * conf.minutes_before_end_lease
        return window.start if asked == draft.DEFAULT and short and at else at

    order = (
        event.BEFORE_END_LEASE, event.END_LEASE, event.VACATE_HOSTS,
        event.START_LEASE,
    )
    return _patched(
        mock.patch.object(draft, '_before_end', before_end),
        mock.patch.object(event, 'ORDER', order),
        mock.patch.object(
            transition.Transitions, '_is_to_start', lambda *_: False
        ),
    )


def _announced_once():
    """A reservation added after the end was announced is not announced."""
    return mock.patch.object(
        draft.Drafts, '_announced_late', lambda self, old, new, now: new
    )


def _given_up_for_good():
    """A start that was given up in an active lease is never due again."""
    real = reader.Reader.due_events
    return mock.patch.object(
        reader.Reader, 'due_events',
        lambda self, now, given_up=None: real(self, now),
    )


def _capacities_as_they_are():
    """Capacities are not capped, and every record must be usable."""
    apply, load = state.Replica.apply, state.Replica.load
    return _patched(
        mock.patch.object(inventory, 'countable', int),
        mock.patch.object(
            state.Replica, 'apply',
            lambda self, revision, records, leave_out=False: apply(
                self, revision, records
            ),
        ),
        mock.patch.object(
            state.Replica, 'load',
            lambda self, revision, records, allocations, leave_out=False: load(
                self, revision, records, allocations
            ),
        ),
    )


def _given_back_twice():
    """The use of a deleted server is subtracted from its host once more."""
    return mock.patch.object(
        present.Present, '_refused', lambda self, *args: set()
    )


def _kept_until_the_end():
    """Servers that a lease keeps are past their end when the lease ends."""
    return _patched(
        mock.patch.object(record.Reservation, 'keeps', False),
        mock.patch.object(
            transition, '_release_servers', lambda tx, lease, now: None
        ),
        mock.patch.object(
            server_reservation, 'claim',
            _claim_for_ever(server_reservation.claim),
        ),
    )


def _claim_for_ever(real):
    """Return `server_reservation.claim` without an end for past leases."""

    def claim(replica, server, host, now):
        noun = replica.reservations.get(server.reservation_id or '')
        return noun or real(replica, server, host, now)

    return claim


def _ended_without_an_image():
    """The end of a server's lifetime deletes the server without a snapshot."""
    real = lifetime.LifetimeResource.end

    def end(self, *args):
        with mock.patch.object(self._nova, 'create_image', lambda *args: True):
            return real(self, *args)

    return mock.patch.object(lifetime.LifetimeResource, 'end', end)


def _counted_twice():
    """A reservation's own servers are counted beside the reservation."""
    real = accounting.LedgerAccounting.steps

    def steps(noun, overdue):
        return real(dataclasses.replace(noun, reservation_id=None), overdue)

    return mock.patch.object(
        accounting.LedgerAccounting, 'steps', staticmethod(steps)
    )


def _copied_by_hint():
    """Only servers with a hint are copied before the end of a reservation."""
    real = on_hosts.OnHostsResource.act

    def act(self, part, when):
        find = self._servers.find

        def hinted(*args):
            return [
                s
                for s in find(*args)
                if s.reservation_id == part.reservation.id
            ]

        with mock.patch.object(self._servers, 'find', hinted):
            return real(self, part, when)

    return mock.patch.object(on_hosts.OnHostsResource, 'act', act)


def _records_stay():
    """A change of a lease does not change the records of its servers."""
    return _patched(
        *(
            mock.patch.object(instance, name, lambda *args, **kwargs: [])
            for name in ('bind', 'set_ends', 'release')
        ),
        mock.patch.object(tx.Tx, 'release_instances', lambda *args: None),
    )


def _ended_whenever_made():
    """A late end also deletes servers that came after the window."""
    real = server_reservation.draws_on

    def draws_on(noun, server, known, host):
        made = max(noun.start, min(server.created, noun.end - 1))
        early = dataclasses.replace(server, created=made) if (
            dataclasses.is_dataclass(server)
        ) else server
        return real(noun, early, None, host)

    return mock.patch.object(server_reservation, 'draws_on', draws_on)


def _moved_whenever():
    """No manager queries Nova when a server without a record has moved."""
    return mock.patch.object(
        servers.Servers, 'has_moved', lambda self, server, since: False
    )


def _deleted_at_a_start():
    """The start of the next lease deletes servers that are past their end."""
    return mock.patch.object(
        vacating.Vacater, '_shelved', lambda self, servers, now: set()
    )


def _records_never_late():
    """A server without a record has come after the start cleared the host."""
    real = server_reservation.draws_on

    def draws_on(noun, server, known, host):
        cleared = dataclasses.replace(noun, cleared=(host,), in_the_way=())
        return real(cleared, server, known, host)

    return mock.patch.object(server_reservation, 'draws_on', draws_on)


def _drawn_until_deleted():
    """A lease that is being deleted has its window until it is deleted."""
    return mock.patch.object(
        lease, 'ending_now', lambda old, now: dataclasses.replace(
            old, status=states.LEASE_DELETING, updated_at=now
        )
    )


def _closed_on_paper():
    """No index knows when a host is closed."""
    return mock.patch.object(batch.Batch, 'close', lambda self, host: None)


def _held_without_room():
    """A held offer has no allocations."""
    real = tx.PlacingTx.add_leases

    def add_leases(self, new, allocations):
        offers = {r.id for lease in new for r in lease.reservations
                  if lease.is_offer}
        real(self, new, [
            a for a in allocations if a.reservation_id not in offers
        ])

    return mock.patch.object(tx.PlacingTx, 'add_leases', add_leases)


def _held_for_ever():
    """A held offer does not lapse."""
    return mock.patch.object(
        transition.Transitions, '_lapse_offer', lambda *_: lambda tx: None
    )


def _strangers_drawn():
    """A magnetic reservation draws servers of all projects that share it."""

    def drawn(replica, asked, host_states, now):
        hosts = {
            held[1]
            for noun in replica.reservations.values()
            if noun.magnetic and noun.is_open_to(asked.project_id)
            and not asked.bound
            for held in replica.indexes.main.held(noun.id)
            if held[2] <= now < held[3]
        }
        return [h for h in host_states if h.uuid in hosts]

    return mock.patch.object(magnetic, 'hosts_of_project', drawn)


def _strangers_ended():
    """The end of a reservation deletes servers of all projects that share it.
    """
    real = server_reservation.draws_on

    def draws_on(noun, server, known, host):
        if server.reservation_id is None and noun.was_open_to(
            server.project_id
        ):
            known = None
            server = dataclasses.replace(server, project_id=noun.project_id)
        return real(noun, server, known, host)

    return mock.patch.object(server_reservation, 'draws_on', draws_on)


def _taken_back():
    """A lease is deleted again after the 201 response."""
    real = lease.Leases.create

    def create(self, *args, **kwargs):
        made = real(self, *args, **kwargs)
        self._ledger.commit(lambda tx: tx.delete_lease(made.id))
        return made

    return mock.patch.object(lease.Leases, 'create', create)


def _moved_anywhere():
    """A server that is due to move is moved to any host."""
    real = relocation.Relocations._move

    def move(self, server, target, *args):
        return real(
            self, server, dataclasses.replace(target, service_name=None), *args
        )

    return mock.patch.object(relocation.Relocations, '_move', move)


def _stopped_at_once():
    """A server is stopped to be moved when its owner is told."""
    return mock.patch.object(
        relocation.Relocations, '_is_time', lambda *args: True
    )


def _unconfirmed():
    """Nobody gives up the place that a server has left."""
    return _patched(
        _given_up_soon(),
        mock.patch.object(
            relocation.Relocations, '_confirm', lambda *args: None
        ),
    )


def _never_moved():
    """No manager asks Nova for the moves that are due."""
    return mock.patch.object(
        relocation.Relocations, '_move', lambda *args: None
    )


def _stays_unknown_to_filters():
    """nova-scheduler does not count the later stays of paths."""
    real = batch.Batch.add_instance

    def add_instance(self, noun, accounting_, overdue):
        if accounting_ is accounting.SchedulerAccounting:
            noun = dataclasses.replace(noun, path=noun.path[:1])
        return real(self, noun, accounting_, overdue)

    return mock.patch.object(batch.Batch, 'add_instance', add_instance)


def _kept_off_by_others():
    """A server is not let in by its path alone."""
    return mock.patch.object(admission.Admissions, '_booked', ())


def _leases_do_not_displace():
    """A lease is placed as if servers that can be moved were in no way."""
    real = displacement.place

    def place(replica, *args):
        with replica.changing() as put:
            put([
                record.encode(
                    dataclasses.replace(each, preemptible=True, path=())
                )
                for each in replica.instances.values() if each.movable
            ])
            return real(replica, *args)

    return mock.patch.object(displacement, 'place', place)


def _paths_stay():
    """A server keeps its path when an operator moves the server."""
    real = relocation.with_path

    def with_path(replica, old, new, now, rules):
        if old is not None and old.path and old.host != new.host:
            return dataclasses.replace(new, path=old.path)
        return real(replica, old, new, now, rules)

    return mock.patch.object(relocation, 'with_path', with_path)


def _stays_outlast_servers():
    """The later stays of a deleted server stay in the replicas."""
    real = batch.Batch.add_instance

    def remove_instance(self, uuid):
        self.removes += batch._ids(uuid)

    def add_instance(self, noun, accounting_, overdue):
        self.removes += batch._relocation_ids(noun.uuid)
        return real(self, noun, accounting_, overdue)

    return mock.patch.multiple(
        batch.Batch, remove_instance=remove_instance, add_instance=add_instance
    )


def _vacated_all_the_same():
    """A server with a path is vacated like a server without a path."""
    return mock.patch.object(
        vacating, '_end', lambda server, record_, now: record_.end
    )


def _booked_twice():
    """A path is planned as if no other path had later stays."""
    real = paths.plan

    def plan(replica, noun, *args, **options):
        others = [
            dataclasses.replace(each, path=each.path[:1])
            for each in replica.instances.values()
            if each.path and each is not noun
        ]
        with replica.changing() as put:
            put(map(record.encode, others))
            return real(replica, noun, *args, **options)

    return mock.patch.object(paths, 'plan', plan)


def _requests_out_of_turn():
    """A lease request takes room that a request ahead of it could use."""
    return mock.patch.object(
        placing, 'starts',
        lambda replica, asked, ahead, within, options: [within],
    )


def _requests_forgotten():
    """Nobody searches for room once a lease request waits."""
    return mock.patch.object(LeaseRequests, '_book_all', lambda *_: None)


def _occurrences_not_unique():
    """The tables allow several leases of an occurrence."""
    real = shutil.copy

    def copy(*args):
        path = real(*args)
        with contextlib.closing(sqlite3.connect(path)) as file:
            file.execute('DROP INDEX ix_lease_series_id_occurrence')
        return path

    return mock.patch.object(shutil, 'copy', copy)


def _series_by_present_start():
    """A change of a series concerns the leases that start from then on."""
    return _patched(
        _occurrences_not_unique(),
        mock.patch.object(
            series, '_planned_start', lambda recurrence, lease: lease.start
        ),
    )


def _series_booked_anew():
    """A series that rolls on books what is booked already."""
    real = series.AllSeries._changed

    def changed(all_series, known, new, at, now):
        change = real(all_series, known, new, at, now)
        return dataclasses.replace(
            change,
            due=all_series._due(dataclasses.replace(new, booked_until=0), now),
        )

    return _patched(
        _occurrences_not_unique(),
        mock.patch.object(series.AllSeries, '_changed', changed),
        mock.patch.object(series_models, 'booked', lambda *_: set()),
    )


def _spares_for_all():
    """Any lease may get a spare host."""
    return mock.patch.object(
        host.Host, 'takes_leases', property(lambda self: self.available)
    )


def _cleaned_alone():
    """The cleaning time is checked for each reservation of a lease alone."""
    return mock.patch.object(
        lease_placing.Placer, 'with_cleaning_time',
        lambda self, reservation, many: list(many),
    )


def _series_not_rolled_on():
    """Only the request that creates a series books leases."""
    return _patched(
        _given_up_soon(),
        mock.patch.object(series.AllSeries, '_roll_on', lambda *_: None),
    )


def _stopped_by_the_first_error():
    """A loop stops at the first object that it cannot handle."""

    def each(self, objects, work, now):
        with contextlib.suppress(RuntimeError):
            for _, one in objects:
                work(one)

    return _patched(
        _given_up_soon(), mock.patch.object(loop.Objects, 'each', each)
    )


def _bound_by_the_old_record():
    """A server stays bound to its reservation, whatever its new flavor."""
    real = request._drawn

    def drawn(server, own, *args):
        of_flavor = flavor.reservation_id(server.features.extra_specs)
        if own is None or of_flavor or own.reservation_id is None:
            return real(server, own, *args)
        return own.reservation_id, own.end

    return mock.patch.object(request, '_drawn', drawn)


ALL = {
    'accepted-leases': Control(None, 'is not there', 1, _taken_back),
    'kept-servers': Control(
        (ON_END,), 'server_goes.*keep', 10, _kept_until_the_end,
        ('open_now', 'boot_bound', 'follow_on'),
    ),
    'magnetic-images': Control(
        (BEFORE_END, MAGNETIC), 'has_an_image', 12, _copied_by_hint,
        ('change_once_announced',),
    ),
    'records-follow': Control(
        (ON_END,), 'finds_its_place_free|finds_no_room|server_goes|let_in', 43,
        _records_stay, ('boot_bound', 'move_near_end', 'end_now'),
    ),
    'counted-once': Control(
        (), 'finds_no_room', 11, _counted_twice, ('create', 'boot_bound')
    ),
    'late-ends': Control(
        (UNSEEN,), 'server_goes', 2, _ended_whenever_made, ('end_late',)
    ),
    'late-moves': Control(
        (UNSEEN,), 'server_goes', 1, _moved_whenever, ('end_late', 'boot')
    ),
    'lasting-servers': Control(
        (LIFETIMES,), 'server_goes|its_own_end_comes', 12, _deleted_at_a_start,
        ('follow_lifetime',),
    ),
    'late-deletions': Control(
        (UNSEEN, MAGNETIC), 'server_goes|who_is_let_in', 12,
        _drawn_until_deleted, ('delete_late',),
    ),
    'late-records': Control(
        (UNSEEN,), 'server_goes|has_its_room', 52, _records_never_late,
        ('come_before',),
    ),
    'strangers-not-drawn': Control(
        (MAGNETIC, SHARING), 'who_is_let_in', 12, _strangers_drawn,
        ('open_now', 'boot'),
    ),
    'strangers-not-ended': Control(
        (MAGNETIC, SHARING, FORCED), 'server_goes', 7, _strangers_ended,
        ('force', 'reach_next'),
    ),
    'image-for-each-end': Control(
        (BEFORE_END,), 'has_an_image', 2, _images_for_any_end,
        ('open_now', 'change_once_announced'),
    ),
    'image-at-own-end': Control(
        (LIFETIMES,), 'its_own_end_comes', 2, _ended_without_an_image,
        ('boot_bounded', 'reach_next'),
    ),
    'short-leases': Control(
        (BEFORE_END,), 'is_told_of_the_end', 9, _announced_at_the_start,
        ('create', 'reach_next'),
    ),
    'added-late': Control(
        (BEFORE_END,), 'is_told_of_the_end', 5, _announced_once,
        ('open_now', 'change_once_announced'),
    ),
    'starts-retried': Control(
        (AWAY,), 'never opened', 14, _given_up_for_good, ('change_while_away',)
    ),
    'capacities-capped': Control(
        (LARGE,), 'InvalidAmount|AmountOverflow', 0, _capacities_as_they_are
    ),
    'present-servers': Control(
        (UNSEEN,), 'who_is_let_in', 7, _given_back_twice, ('replace_unseen',)
    ),
    'booked-host-only': Control(
        (RELOCATION,), 'moves_to_the_booked_host', 0, _moved_anywhere,
        ('boot_lasting', 'reserve_occupied', 'reach_move'),
    ),
    'stopped-when-chosen': Control(
        (RELOCATION, COLD), 'when_its_owner_chooses', 0, _stopped_at_once,
        ('boot_lasting', 'reach_move'),
    ),
    'move-is-confirmed': Control(
        (RELOCATION, COLD), 'never done', 0, _unconfirmed,
        ('boot_lasting', 'reach_move'),
    ),
    'reserve-beside-preemptible': Control(
        (PREEMPTIBLE,), 'what_is_kept_has_room_now', 27,
        _no_room_beside_preemptible, ('boot_preemptible', 'open_now'),
    ),
    'only-some-leases-leave': Control(
        (RELOCATION, LEAVING), 'who_is_let_in', 3, _all_leases_leave,
        ('boot_fixed', 'reserve_later'),
    ),
    'moved-in-time': Control(
        (RELOCATION,), 'late_only_if', 0, _never_moved,
        ('boot_lasting', 'reserve_occupied', 'reach_next'),
    ),
    'stays-in-filters': Control(
        (RELOCATION,), 'who_is_let_in', 1, _stays_unknown_to_filters,
        ('boot_lasting', 'reserve_occupied', 'move_planned', 'boot'),
    ),
    'let-in-by-path': Control(
        (RELOCATION,), 'let_in_where_it_is_booked', 7, _kept_off_by_others,
        ('boot_lasting', 'reserve_occupied', 'reach_move'),
    ),
    'leases-displace': Control(
        (RELOCATION,), 'finds_its_place_free', 0, _leases_do_not_displace,
        ('boot_lasting', 'reserve_occupied'),
    ),
    'stays-booked-once': Control(
        (RELOCATION,), 'a_new_path_has_room', 0, _booked_twice,
        ('boot_lasting', 'reserve_occupied'),
    ),
    'paths-end-with-moves': Control(
        (RELOCATION,), 'leads_from_where', 0, _paths_stay,
        ('boot_lasting', 'reserve_occupied', 'move_planned'),
    ),
    'paths-end-with-servers': Control(
        (RELOCATION,), 'read_anew|what_the_ledger_says', 0,
        _stays_outlast_servers,
        ('boot_lasting', 'reserve_occupied', 'remove_planned'),
    ),
    'hosts-are-closed': Control(
        (MAINTENANCE,), 'closed_host|finds_its_place_free|leaves_room', 0,
        _closed_on_paper, ('close', 'create'),
    ),
    'offers-hold-room': Control(
        (OFFERS,), 'an_accepted_lease_is_there', 0, _held_without_room,
        ('hold', 'accept'),
    ),
    'offers-lapse': Control(
        (OFFERS,), 'still held|the_ledger_is_sound', 0, _held_for_ever,
        ('hold',),
    ),
    'occurrences-booked-once': Control(
        (SERIES,), 'an_occurrence_is_booked_once', 0, _series_booked_anew,
        ('create_series',),
    ),
    'occurrences-by-name': Control(
        (SERIES,), 'is not there|an_occurrence_is_booked_once', 4,
        _series_by_present_start,
        ('create_series', 'move_lease_of_series', 'change_series'),
    ),
    'spares-kept': Control(
        (SPARES,), 'a_spare_host_replaces', 0, _spares_for_all,
        ('hold_back', 'create'),
    ),
    'cleaned-together': Control(
        (CLEANING,), 'a_lease_is_apart', 0, _cleaned_alone,
        ('open_now', 'follow_together'),
    ),
    'groups-are-limited': Control(
        (GROUPS,), 'no_group_has_more_than', 1, _groups_not_limited,
        ('create',),
    ),
    'series-roll-on': Control(
        (SERIES,), 'never done', 1, _series_not_rolled_on, ('create_series',)
    ),
    'requests-in-turn': Control(
        (REQUESTS,), 'was booked in .* ahead of', 5, _requests_out_of_turn,
        ('wait_for_room', 'create'),
    ),
    'requests-booked': Control(
        (REQUESTS,), 'waits for the room', 5, _requests_forgotten,
        ('wait_for_room', 'create'),
    ),
    'faulty-stop-no-others': Control(
        (SERIES, FAULTS), 'never done', 4, _stopped_by_the_first_error,
        ('create_series', 'spoil_series'),
    ),
    'resized-is-decided': Control(
        (RESIZES,), 'who_is_let_in', 17, _bound_by_the_old_record,
        ('open_now', 'boot_bound', 'resize'),
    ),
    'paths-spare-servers': Control(
        (RELOCATION,), 'left_alone|moves_to_the_booked_host', 5,
        _vacated_all_the_same,
        ('boot_lasting', 'reserve_occupied', 'reach_next'),
    ),
}
