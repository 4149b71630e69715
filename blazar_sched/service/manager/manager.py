# SPDX-License-Identifier: Apache-2.0
"""The manager: combines the parts of the service into one object."""

from collections.abc import Callable
from concurrent import futures
import contextlib
import functools
import itertools
import time

from keystoneauth1.adapter import Adapter
from oslo_config import cfg
from oslo_log import log

from blazar_sched.conf import nova as nova_conf
from blazar_sched.conf import placement as placement_conf
from blazar_sched.conf import relocation as relocation_conf
from blazar_sched.domain.duration import RELOCATE
from blazar_sched.replica import wire
from blazar_sched.service import before_end
from blazar_sched.service import database
from blazar_sched.service import loop
from blazar_sched.service import metrics as service_metrics
from blazar_sched.service import parts
from blazar_sched.service import resources
from blazar_sched.service.booking import extension
from blazar_sched.service.booking import lease
from blazar_sched.service.booking import placing_options
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.search import WindowSearch
from blazar_sched.service.bus import fanout
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus import nova_notifications
from blazar_sched.service.bus import rpc
from blazar_sched.service.clients import keystone as keystone_client
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.glance import Glance
from blazar_sched.service.clients.keystone import Keystone
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.enforcement.admission import Enforcement
from blazar_sched.service.events import transition
from blazar_sched.service.events import trust
from blazar_sched.service.events.clock import Clock
from blazar_sched.service.events.runner import Runner
from blazar_sched.service.manager import capacity
from blazar_sched.service.manager import endpoint
from blazar_sched.service.manager import gauges
from blazar_sched.service.manager.running import Running
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.resources import base
from blazar_sched.service.resources import freepool
from blazar_sched.service.resources import vacating
from blazar_sched.service.upkeep import clearing
from blazar_sched.service.upkeep import closing
from blazar_sched.service.upkeep import flavor_sync
from blazar_sched.service.upkeep import healing
from blazar_sched.service.upkeep import host
from blazar_sched.service.upkeep import instance_sync
from blazar_sched.service.upkeep import leavable
from blazar_sched.service.upkeep import lifetime
from blazar_sched.service.upkeep import monitor
from blazar_sched.service.upkeep import relocation
from blazar_sched.service.upkeep import replanning
from blazar_sched.service.upkeep import restorer

LOG = log.getLogger(__name__)

# The seconds between two steps of the pruner, and the number of commits with
# deleted leases in a step.
PRUNE_INTERVAL = 600.0
PURGE_SLICES = 200
# Seconds for which an idempotency key is kept whose lease was deleted: far
# longer than a suspended manager can keep a copy of a request; and the number
# of keys that one commit deletes.
KEYS_KEPT, KEYS_SLICE = 86400, 200


class Manager:
    """A manager of one ledger, whose tables must exist.

    :param conf: the configuration of the service
    :param nova: a Nova client; by default a client made from the group in
        `conf`; likewise for the other services
    :param clock: the clock of this process, in epoch seconds; may be set back
        or ahead
    :param monotonic: returns monotonic seconds
    :param wait: sleeps for a number of seconds
    :param pool: the executor of the tries of events; by default threads
    :param adapter: returns the adapter for the service that a group of options
        in `conf` describes, for the services that only parts call
    :param metrics: the metrics that count what the manager does
    :param thread_time: returns the processor time of a thread in seconds
    :raises ValueError: if an option cannot be used
    """

    def __init__(
        self, conf: cfg.ConfigOpts, nova: Nova | None = None,
        placement: Placement | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
        pool: futures.Executor | None = None,
        adapter: Callable[[str], Adapter | None] | None = None,
        keystone: Keystone | None = None, metrics: Metrics | None = None,
        thread_time: Callable[[], float] = time.thread_time,
    ) -> None:
        # An option that cannot be parsed stops the manager now, and not each
        # lease later.
        placing_options.read(conf.manager)
        self.conf, self.monotonic, self.pool = conf, monotonic, pool
        self.wait = wait
        self._bus = rpc.transport(conf, 'manager')
        self.notifier = notifier.Notifier(conf)
        self._fanout = fanout.Fanout(self._bus, lambda: self.ledger.id)
        self.metrics = metrics or service_metrics.new()
        self.clock = Clock(
            clock, monotonic, lambda: conf.manager.clock_tolerance,
            self.metrics,
        )
        self.ledger = database.open_ledger(
            conf, self._fanout.announce, self.notifier.notify, self.metrics
        )
        self.gauges = gauges.Gauges(
            conf, self.ledger, self.notifier, self.clock, monotonic,
            lambda: self._loops,
        )
        self.metrics.registry.register(self.gauges)
        self.services = self._make_services(nova, placement, adapter, keystone)
        nova = self.services.nova
        drivers = resources.Drivers(self.services, parts.running(conf))
        self.enforcement = Enforcement(conf, self.ledger, pool, self.clock)
        self.trusts = trust.Trusts(
            self.ledger, self.services.keystone, self.clock, self.metrics
        )
        transitions = transition.Transitions(
            conf, self.ledger, self.trusts, self.enforcement
        )
        self.runner = Runner(
            conf, self.ledger, drivers, transitions, self.clock, monotonic,
            lambda: self.instances.wake(), pool, self.metrics,
        )
        self.bookings = Bookings(
            conf, self.ledger, drivers, self.runner, self.enforcement,
            self.trusts, self.clock,
        )
        lifetimes = lifetime.Lifetimes(
            self.bookings, nova, self.services.aliases
        )
        self.instances = instance_sync.Instances(
            conf, self.ledger, nova, lifetimes, self.notifier, self.clock,
            self.metrics,
        )
        self.relocations = relocation.Relocations(
            conf, self.ledger, nova, self.notifier, self.clock,
            self.instances.notice, self.metrics,
        )
        self.flavors = flavor_sync.Flavors(self.ledger, nova)
        self.search = WindowSearch(self.bookings, thread_time)
        self.leases = lease.Leases(self.bookings, self.search, wait)
        self.extensions = extension.Extensions(self.bookings, self.leases)
        self.hosts = host.Hosts(
            conf, self.ledger, nova, self.services.placement,
            self.services.freepool, self.clock,
        )
        self.healer = healing.Healer(
            conf, self.ledger, self.runner.wake, self.clock, self.metrics
        )
        self.replanner = replanning.Replanner(
            self.ledger, self.healer, self.clock, self.metrics
        )
        self.monitor = monitor.Monitor(
            conf, self.ledger, nova, self.hosts, self.healer, self.replanner,
            self.notifier, self.clock,
        )
        self.leavable_hosts = leavable.LeavableHosts(
            conf, self.ledger, self.monitor.wake, self.clock
        )
        self.restorer = restorer.Restorer(
            conf, self.ledger, nova, self.clock, monotonic, self.metrics
        )
        self.clearing = clearing.Clearing(
            conf, self.ledger, self.services.vacater, self.clock, self.metrics
        )
        self.closing = closing.Closing(
            conf, self.ledger, self.services.vacater, self.clock, self.metrics
        )
        self.capacity = capacity.Capacity(self.ledger, drivers, self.clock)
        end_point = endpoint.Endpoint(
            self.ledger, self.leases, self.hosts, self.healer, self.capacity,
            self.extensions, self.instances, self.flavors, self.enforcement,
            self.clock,
            relocation_conf.settings(conf.manager), self._parts,
        )
        self.endpoint = rpc.Counted(
            end_point, self.metrics, overtake=self.ledger.overtake
        )
        self._worker_endpoint = rpc.Counted(
            end_point, self.metrics, wire.RPC_VERSION, wire.MANAGER_METHODS
        )
        self._threads = self._ordered_threads()
        self._loops = tuple(
            loop for each in self._threads for loop in each.loops
        )
        self._server: rpc.Server | None = None

    def _make_services(
        self, nova: Nova | None, placement: Placement | None,
        adapter: Callable[[str], Adapter | None] | None,
        keystone: Keystone | None,
    ) -> base.Services:
        conf = self.conf
        aliases = nova_conf.pci_aliases(conf)
        if nova is None:
            compute = rest.load_adapter(conf, nova_conf.GROUP)
            nova = Nova(
                compute, Glance(rest.beside(compute, 'image')), aliases
            )
        keystone = keystone or keystone_client.load(conf)
        return base.Services(
            ledger=self.ledger, nova=nova,
            placement=placement
            or Placement(rest.load_adapter(conf, placement_conf.GROUP)),
            keystone=keystone, freepool=freepool.Freepool(conf, nova),
            vacater=vacating.Vacater(conf, self.ledger, nova, self.notifier),
            before_end=before_end.Actions(conf, self.ledger, nova, keystone),
            aliases=aliases,
            adapter=adapter or functools.partial(rest.load_adapter, conf),
        )

    def _ordered_threads(self) -> tuple[loop.Threads, ...]:
        """Return what runs in threads, in the order of the start.

        What announces the work of others is started first, and stopped last.
        """
        options = self.conf.manager
        return (
            self._fanout,
            self.notifier,
            self.gauges,
            loop.Loop('pruner', self._prune, lambda: PRUNE_INTERVAL),
            self.instances,
            self.relocations,
            loop.Loop(
                'flavor sync', self.flavors.sync,
                lambda: options.flavor_sync_interval,
            ),
            loop.Loop(
                'host sync', self.hosts.sync,
                lambda: options.host_sync_interval,
            ),
            self.monitor,
            self.leavable_hosts,
            self.closing,
            self.clearing,
            self.runner,
            self.restorer,
            self.trusts,
            *(each for part in self._parts for each in part.threads),
            *self._listeners(),
        )

    @functools.cached_property
    def _parts(self) -> list[Running]:
        starts = parts.each('manager', 'start', parts.running(self.conf))
        return [start(self) for start in starts]

    def start(self) -> None:
        """Answer RPC calls and execute due events, in threads.

        While the broker is away, due events are still executed. RPC calls are
        answered once the servers of Nova were looked at, or Nova has failed.

        :raises NotUpgraded: if the ledger's tables are not those of this
            version
        :raises Unavailable: if the database does not answer
        """
        self.ledger.require_current()
        self.ledger.warm()
        options = self.conf.manager
        if options.unbounded == RELOCATE and not options.relocate_instances:
            LOG.info(
                '[manager] relocate_instances is not set: servers without an '
                'end follow unbounded_fixed = %s', options.unbounded_fixed
            )
        self.clock.ask(self.ledger.next_event)
        for each in self._threads:
            each.start()
        # Servers may have been placed while no manager was there: the first
        # lease must not be placed over these servers.
        self.instances.await_sync()
        self._server = rpc.Server(
            self._bus,
            [
                self.endpoint, self._worker_endpoint,
                rpc.Reporting(self._bus, 'manager'),
            ],
        )
        self._server.start()

    @property
    def hangs(self) -> bool:
        """Whether a loop hangs."""
        return any(each.hangs for each in self._loops)

    def stop(self) -> None:
        """Accept no more calls and return once the work in progress is over.

        That takes some seconds at most: a step that hangs is abandoned, and
        its events are left to the other managers. A manager that was started
        in part, or not at all, may also be stopped.
        """
        self.runner.stopping = True
        if self._server is not None:
            self._server.stop()
        for each in reversed(self._threads):
            each.stop()
        self.enforcement.stop()
        # Another manager may continue in place of this one, with the same
        # metrics.
        with contextlib.suppress(KeyError):
            self.metrics.registry.unregister(self.gauges)
        self.ledger.close()

    def _listeners(self) -> list[nova_notifications.Listener]:
        if not self.conf.manager.enable_notification_monitor:
            return []
        return [
            nova_notifications.Listener(
                self.conf, self.monitor.notice, self.instances.notice
            )
        ]

    def _prune(self) -> None:
        """Delete what is too old; every manager may do so."""
        options, now = self.conf.manager, int(self.clock())
        gone = self.ledger.prune(options.changes_kept)
        if gone:
            LOG.info('Pruned the changes of %d revisions', gone)
        if options.keep_leases:
            before = now - options.keep_leases
            slices = itertools.islice(self.ledger.purge(before), PURGE_SLICES)
            if count := sum(slices):
                LOG.info('Deleted %d leases that ended long ago', count)
        while self.ledger.write(
            lambda tx: tx.drop_keys(now - KEYS_KEPT, KEYS_SLICE)
        ):
            pass
