# SPDX-License-Identifier: Apache-2.0
"""One live puller for each process, on an in-memory message bus."""

import dataclasses
import functools
import logging
import os
import pathlib
import subprocess
import sys
import threading
import time
import uuid

from oslo_config import cfg
from oslo_config import fixture as config_fixture
import oslo_messaging
import prometheus_client
from prometheus_client import parser
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import accounting
from blazar_sched.replica import metrics
from blazar_sched.replica import pace
from blazar_sched.replica import record
from blazar_sched.replica import snapshot_file
from blazar_sched.replica import state
from blazar_sched.replica import wire
from blazar_sched.worker import announcer
from blazar_sched.worker import decision_log
from blazar_sched.worker import kept_snapshot
from blazar_sched.worker import process
from blazar_sched.worker import threads

DEADLINE = 20


def eventually(probe):
    deadline = time.monotonic() + DEADLINE
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return True


class EndPoint:
    target = oslo_messaging.Target(version='1.0')

    ledger = None
    broken = None
    booked = ()

    def book_instance(self, ctxt, page, placed_at):
        self.booked.append((wire.parse_instance(page), placed_at))

    def changes(self, ctxt, since, limit):
        return self.broken or self.ledger.changes(since, limit)

    def snapshot(self, ctxt, after, limit):
        return self.broken or self.ledger.snapshot(after, limit)


@pytest.fixture
def configure(tmp_path, monkeypatch):
    # Tests of filters and hooks in this process may have started a worker,
    # with other options.
    process.stop()
    monkeypatch.setattr(pace, 'MAX_PAUSE', 0.05)
    monkeypatch.setattr(threads, 'RPC_TIMEOUT', 0.5)
    config = config_fixture.Config(process.CONF)
    config.setUp()

    def configure(**options):
        config.config(group='blazar_sched', **options)

    configure(
        transport_url='fake:/', poll_interval=0.01,
        snapshot_path=str(tmp_path / 'snapshot'), start_timeout=0,
    )
    yield configure
    process.stop()
    config.cleanUp()


@pytest.fixture(scope='module')
def manager():
    """Run the manager's end of the bus, with any end point."""
    end_point = EndPoint()
    conf = cfg.ConfigOpts()
    conf.register_opts(
        oslo_messaging._tracing.client.oslo_messaging_tracing,
        group='oslo_messaging_tracing',
    )
    server = oslo_messaging.get_rpc_server(
        oslo_messaging.get_rpc_transport(conf, url='fake:/'),
        oslo_messaging.Target(
            exchange=wire.EXCHANGE, topic=wire.TOPIC, server='me'
        ),
        [end_point],
    )
    server.start()
    yield end_point
    server.stop()
    server.wait()


@pytest.fixture
def end_point(manager, configure, ledger):
    manager.ledger = ledger
    manager.broken = None
    manager.booked = []
    yield manager
    process.stop()
    # From here on the end point fails.
    manager.ledger = None


# The threads of earlier tests in this process: a thread whose manager ended
# first still waits for a response.
LEFT = set()


@pytest.fixture(scope='module', autouse=True)
def left():
    LEFT.update(threading.enumerate())


def pullers():
    return [
        t
        for t in threading.enumerate()
        if t.name == 'blazar-sched-puller' and t not in LEFT
    ]


def hosts():
    replica, stale = process.current()
    return None if replica is None or stale else set(replica.hosts)


def test_follows_the_ledger(end_point, ledger, make):
    ledger.commit(make.host('h1'))
    process.ensure_started()
    assert eventually(lambda: hosts() == {'h1'})
    ledger.commit(make.host('h2'))
    assert eventually(lambda: hosts() == {'h1', 'h2'})


def test_one_puller_however_many_ask(end_point):
    asking = [
        threading.Thread(target=process.ensure_started) for _ in range(20)
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert len(pullers()) == 1


def test_nothing_is_started_in_the_master(configure):
    process.prepare()
    assert pullers() == []


def test_nobody_there_is_no_replica(configure):
    assert process.current() == (None, True)


def test_garbage_makes_it_stale_until_it_ends(end_point, ledger, make):
    ledger.commit(make.host('h1'))
    process.ensure_started()
    assert eventually(lambda: hosts() == {'h1'})
    end_point.broken = {'version': wire.WIRE_VERSION}
    assert eventually(lambda: process.current()[1])
    assert 'h1' in process.current()[0].hosts
    end_point.broken = None
    assert eventually(lambda: hosts() == {'h1'})


def test_no_number_of_failures_ends_it(configure, monkeypatch):
    """This would take a few hours without a manager."""

    def fail(now):
        raise ConnectionError('nobody is there')

    mine = threads.Worker()
    monkeypatch.setattr(mine.puller, 'pull', fail)
    mine._failures = 5000
    assert 0 < mine._turn() <= pace.MAX_PAUSE


def test_a_replica_that_somebody_else_feeds(configure):
    configure(max_age=1)
    replica = state.Replica(accounting.SchedulerAccounting)
    with process.following(replica, lambda: 7.5):
        assert process.current() == (replica, False)
        assert process.last_known() is replica
        assert process.now() == 7
        process.stop()
    assert process.last_known() is None
    assert pullers() == []


def test_another_version_is_told_of_once(
    end_point, ledger, make, caplog, configure
):
    """F14: the replica is stale, not wrong, until the peer is upgraded."""
    caplog.set_level(logging.INFO, logger=threads.__name__)
    configure(max_age=1)
    ledger.commit(make.host('h1'))
    process.ensure_started()
    assert eventually(lambda: hosts() == {'h1'})

    end_point.broken = {'version': 1}
    assert eventually(lambda: process.current()[1])
    assert 'h1' in process.current()[0].hosts

    end_point.broken = None
    assert eventually(lambda: hosts() == {'h1'})

    def told():
        return [
            r.getMessage() for r in caplog.records
            if r.name == threads.__name__
        ]

    # The replica is fed before the thread logs that the pulls work again.
    assert eventually(lambda: 'again' in told()[-1])
    assert 'wire version 1 is older than ours' in told()[0]
    assert len([t for t in told() if 'wire version' in t]) == 1


class TestNews:
    """A worker pulls at once when a revision is announced."""

    @pytest.fixture
    def tell(self):
        """Cast news to the workers, as managers do."""
        client = oslo_messaging.get_rpc_client(
            oslo_messaging.get_rpc_transport(process.CONF, url='fake:/'),
            oslo_messaging.Target(
                exchange=wire.EXCHANGE, topic=wire.NEWS_TOPIC, fanout=True,
                version=wire.RPC_VERSION,
            ),
        )

        def tell(ledger, revision):
            client.cast({}, wire.NEWS_METHOD, revision=revision, ledger=ledger)

        return tell

    @pytest.fixture
    def asked(self, configure, end_point, ledger, make, monkeypatch):
        """Start a worker that does not poll; return its requests."""
        asked = []
        changes = end_point.changes

        def counted(ctxt, since, limit):
            asked.append(since)
            return changes(ctxt, since, limit)

        monkeypatch.setattr(end_point, 'changes', counted)
        configure(poll_interval=1000)
        ledger.commit(make.host('h1'))
        process.ensure_started()
        assert eventually(lambda: hosts() == {'h1'})
        return asked

    def test_pulls_at_once(self, asked, ledger, make, tell):
        ledger.commit(make.host('h2'))

        def heard():
            # The worker may have begun to listen only now.
            tell(ledger.id, ledger.newest)
            return hosts() == {'h1', 'h2'}

        assert eventually(heard)

    @pytest.mark.parametrize(
        'revision', [1, 1.0], ids=['known', 'known, as a float']
    )
    def test_what_it_has_is_no_news(self, asked, ledger, make, tell, revision):
        self.test_pulls_at_once(asked, ledger, make, tell)
        asked.clear()
        for _ in range(20):
            tell(ledger.id, ledger.newest * revision)
        ledger.commit(make.host('h3'))
        tell(ledger.id, ledger.newest)
        assert eventually(lambda: hosts() == {'h1', 'h2', 'h3'})
        assert len(asked) <= 2

    @pytest.mark.parametrize(
        'ledger_id, revision', [('another', 1), (None, None), ([], 'x')]
    )
    def test_what_it_hears_is_not_believed(
        self, asked, ledger, make, tell, ledger_id, revision
    ):
        self.test_pulls_at_once(asked, ledger, make, tell)
        ledger.commit(make.host('h3'))
        tell(ledger_id, revision)
        assert eventually(lambda: hosts() == {'h1', 'h2', 'h3'})
        assert process.current()[0].revision == ledger.newest

    def test_many_news_cause_one_pull(
        self, asked, ledger, make, tell, monkeypatch
    ):
        self.test_pulls_at_once(asked, ledger, make, tell)
        monkeypatch.setattr(pace, 'SOONEST', pace.LATEST)
        tell('another', 0)
        asked.clear()
        for n in range(50):
            ledger.commit(make.host(f'n{n}'))
            tell(ledger.id, ledger.newest)
        assert eventually(lambda: len(hosts() or ()) == 52)
        assert len(asked) <= 10


@pytest.mark.parametrize('seconds', [3600, -3600, 2])
def test_decides_by_the_managers_clock(
    end_point, ledger, make, monkeypatch, caplog, seconds
):
    """A clock that is wrong is told, and changes no decision."""
    true = int(time.time())
    monkeypatch.setattr(process, '_clock', lambda: true + seconds)
    changes = end_point.changes
    monkeypatch.setattr(end_point, 'changes', lambda *args, **kwargs: {
        **changes(*args, **kwargs), 'now': true,
    })
    ledger.commit(make.host('h1'))
    worker = process.ensure_started()

    assert eventually(lambda: hosts() == {'h1'} and process.now() == true)
    side = 'ahead of' if seconds > 0 else 'behind'
    told = f'clock of this node is {abs(seconds)} s {side}'
    # The log is written once the difference has been taken into account.
    assert eventually(lambda: (told in caplog.text) is (
        abs(seconds) > threads.MAX_CLOCK_DIFFERENCE
    ))
    worker._measure()
    assert f'clock_difference_seconds{{worker="{worker.name}"}} {seconds}' in (
        prometheus_client.generate_latest(worker.metrics.registry).decode()
    )


class TestTrouble:
    """Busy schedulers do not send more requests to a failing manager."""

    @pytest.fixture
    def asked(self, configure, end_point, monkeypatch):
        """Start a manager that responds with errors; return the requests."""
        asked = []

        def fails(ctxt, after, limit):
            asked.append(after)
            raise RuntimeError('no database')

        monkeypatch.setattr(pace, 'MAX_PAUSE', 3600.0)
        monkeypatch.setattr(pace, 'MAX_DOUBLINGS', 30)
        monkeypatch.setattr(end_point, 'snapshot', fails)
        configure(poll_interval=3600)
        return asked

    def test_neither_decisions_nor_news_undo_the_pause(self, asked):
        mine = process.ensure_started()
        assert eventually(lambda: mine._failures == 1)
        for n in range(5 * decision_log.MANY_FRESH):
            process.note(_Decided(str(n)), 0.001)
            mine._hear('ledger', n)
        assert eventually(lambda: len(mine.decisions._settled) > 0)
        mine._thread.join(0.2)
        assert len(asked) == 1

    def test_stops_in_the_pause(self, asked):
        mine = process.ensure_started()
        assert eventually(lambda: mine._failures == 1)
        mine.stop()
        assert not mine._thread.is_alive()

    def test_the_log_has_no_traceback_of_the_manager(
        self, configure, end_point, monkeypatch, caplog
    ):
        """As RemoteError has, by which an error travels over a broker."""
        def fails(ctxt, after, limit):
            raise oslo_messaging.RemoteError(
                'Unavailable', 'the database refused 11 attempts',
                ['Traceback (most recent call last):'],
            )

        caplog.set_level(logging.WARNING, logger=threads.__name__)
        monkeypatch.setattr(end_point, 'snapshot', fails)
        configure(poll_interval=3600)
        process.ensure_started()

        def told():
            return [
                each.getMessage()
                for each in caplog.records
                if each.name == threads.__name__
            ]

        assert eventually(told)
        assert told() == [
            'The ledger cannot be pulled from, trying on. Unanswered: '
            'RemoteError: Remote error: Unavailable the database refused 11 '
            'attempts (time 1 in this process)'
        ]


class TestSilence:
    """The message bus goes away, and a pull waits for it without end."""

    @pytest.fixture
    def bus(self, configure, ledger, make, monkeypatch, tmp_path):
        """Respond by `ledger` while this is set, else not at all."""
        bus = threading.Event()
        bus.set()

        def call(self, method, **kwargs):
            bus.wait()
            answer = ledger.changes if method == 'changes' else ledger.snapshot
            return answer(*kwargs.values())

        monkeypatch.setattr(threads.Worker, 'call', call)
        ledger.commit(make.host('h1'))
        folder = tmp_path / 'metrics'
        folder.mkdir()
        configure(max_age=1, metrics_path=str(folder))
        mine = process.ensure_started()
        assert eventually(lambda: hosts() == {'h1'})
        bus.clear()
        assert eventually(lambda: process.current()[1])
        yield bus
        bus.set()
        mine.stop()

    def gauge(self, tmp_path, metric):
        path = next((tmp_path / 'metrics').glob('*.prom'), None)
        if path is None:
            return None
        [value] = [
            sample.value
            for family in parser.text_string_to_metric_families(
                path.read_text()
            )
            for sample in family.samples if sample.name == metric.name
        ]
        return value

    def test_the_metrics_tell(self, bus, tmp_path):
        assert eventually(lambda: self.gauge(tmp_path, metrics.STALE) == 1)
        assert eventually(lambda: self.gauge(tmp_path, metrics.AGE) > 1)
        bus.set()
        assert eventually(lambda: self.gauge(tmp_path, metrics.STALE) == 0)

    @pytest.fixture
    def told(self):
        """told(text) -> the log messages with a text since the set-up.

        The silence begins as the set-up ends: a message between the set-up
        and the test is in no phase of caplog.
        """
        messages = []
        handler = logging.Handler()
        handler.emit = lambda record: messages.append(record.getMessage())
        logger = logging.getLogger(threads.__name__)
        level = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        yield lambda text: [each for each in messages if text in each]
        logger.removeHandler(handler)
        logger.setLevel(level)

    def test_the_log_tells(self, told, bus):
        assert eventually(lambda: told('No response from the ledger'))
        bus.set()
        assert eventually(lambda: told('The ledger responds again'))
        assert len(told('No response from the ledger')) == 1

    def test_novas_objects_are_let_go(self, bus):
        decision = _Decided()
        process.note(decision, 0.001)
        assert eventually(lambda: decision.settled)


def test_a_bus_that_is_lost_is_not_waited_for_without_end(end_point):
    """oslo.messaging would reconnect without end inside of one call."""
    mine = threads.Worker()
    mine.call('changes', since=0, limit=1)
    assert mine._client.retry == wire.RETRIES
    mine._listener.stop()


class TestPlacedInstance:
    """An instance that one of two workers has placed."""

    PLACED = Instance('i1', 'h1', 'p', {'VCPU': 1}, building=True)

    @pytest.fixture
    def workers(self, end_point, ledger, make, monkeypatch):
        ledger.commit(make.host('h1'))
        workers = []
        for name in 'scheduler-1', 'scheduler-2':
            with monkeypatch.context() as patched:
                patched.setattr(
                    threads.socket, 'gethostname', functools.partial(str, name)
                )
                workers.append(threads.Worker())
        for each in workers:
            each.start()
        assert eventually(lambda: all(each._replica() for each in workers))
        yield workers
        for each in workers:
            each.stop()

    def counted(self, worker):
        return worker.pending.by_host(worker._replica())

    def announce_until_heard(self, mine, other):
        """Announce until the other worker listens: nothing is kept for it."""

        def heard():
            mine.add_placed(self.PLACED, 1000, 60)
            return self.counted(other)

        assert eventually(heard)

    def test_counts_at_the_other_worker(self, workers):
        mine, other = workers
        assert self.counted(other) == {}
        self.announce_until_heard(mine, other)
        assert self.counted(other) == {'h1': [self.PLACED]}

    def test_placed_instance_is_booked_by_the_manager(
        self, workers, end_point
    ):
        workers[0].add_placed(self.PLACED, 1000, 60)
        assert eventually(lambda: end_point.booked)
        assert end_point.booked == [(self.PLACED, 1000)]

    def test_preemptible_instance_is_announced_to_the_manager(
        self, workers, end_point
    ):
        """It may not be on the host of a lease that starts meanwhile."""
        placed = dataclasses.replace(self.PLACED, preemptible=True)
        workers[0].add_placed(placed, 1000, 60)
        assert eventually(lambda: end_point.booked)
        assert end_point.booked == [(placed, 1000)]

    def test_a_record_that_comes_and_goes_at_once_ends_the_count(
        self, workers, ledger
    ):
        worker = workers[0]
        worker.add_placed(self.PLACED, 1000, 60)
        ledger.commit(self.PLACED)
        ledger.commit(gone=[(record.INSTANCE, self.PLACED.uuid)])
        assert eventually(lambda: worker._replica().revision == ledger.newest)
        assert self.counted(worker) == {}

    def test_its_own_announcement_is_ignored(self, workers):
        """It may be older than the worker's last decision."""
        mine, other = workers
        self.announce_until_heard(mine, other)
        mine.pending.add(dataclasses.replace(self.PLACED, host='h2'), 60)
        page = wire.instance_page(self.PLACED)
        mine._listener._end_point.placed({}, mine.name, page)
        assert set(self.counted(mine)) == {'h2'}

    @pytest.mark.parametrize('page', [
        {**wire.FORMAT, 'oldest': wire.WIRE_VERSION + 1}, wire.FORMAT,
        None, 'text',
        {**wire.FORMAT, 'record': ['host', 'h', {}]},
    ])
    def test_an_unreadable_announcement_is_ignored(self, workers, page):
        mine, other = workers
        mine._listener._end_point.placed({}, other.name, page)
        assert self.counted(mine) == {}

    def test_a_bus_that_is_away_is_not_waited_for(self, workers, monkeypatch):
        mine, _ = workers
        held = threading.Event()
        monkeypatch.setattr(mine._announcer, '_cast', lambda *_: held.wait())
        began = mine._announcer._failure.count
        for _ in range(announcer.MAX_WAITING + 2):
            mine.add_placed(self.PLACED, 1000, 60)
        assert mine._announcer._failure.count > began
        held.set()

    def test_a_failed_cast_ends_nothing(self, workers, monkeypatch):
        mine, other = workers
        with monkeypatch.context() as patched:
            patched.setattr(
                mine._announcer._workers, 'cast', lambda *args, **kwargs: 1 / 0
            )
            mine.add_placed(self.PLACED, 1000, 60)
            assert eventually(lambda: mine._announcer._failure.count)
        self.announce_until_heard(mine, other)


class TestSnapshotFile:
    """The copy from which a new worker continues while the manager is down."""

    @pytest.fixture
    def kept(self, configure, ledger, make):
        def kept(age=0, max_age=120):
            configure(max_age=max_age)
            ledger.commit(make.host('h1'))
            snapshot_file.write(
                process.CONF.blazar_sched.snapshot_path, ledger.id,
                ledger.newest, process.now() - age, ledger.items(),
            )

        return kept

    def test_decides_with_the_manager_down(self, kept):
        kept(age=60)
        process.ensure_started()
        assert eventually(lambda: hosts() == {'h1'})

    @pytest.mark.parametrize('age', [121, -121])
    def test_its_age_counts(self, kept, caplog, age):
        kept(age)
        process.ensure_started()
        assert eventually(lambda: process.current()[0] is not None)
        replica, stale = process.current()
        assert stale
        assert 'h1' in replica.hosts
        # It is from the future, or old.
        assert ('from now' in caplog.text) is (age < 0)

    def test_snapshot_file_continues_to_age(self, kept, monkeypatch):
        kept(age=110)
        process.ensure_started()
        assert eventually(lambda: hosts() == {'h1'})
        later = time.monotonic() + 11
        monkeypatch.setattr(
            process.ensure_started().puller, '_monotonic', lambda: later
        )
        assert process.current()[1]

    @pytest.mark.parametrize(
        'content',
        [b'', b'\x00' * 99, b'{"version": 2}\n', b'sha256 \n', b'\xff\n'],
    )
    def test_bad_file_is_ignored_with_a_warning(
        self, configure, end_point, ledger, make, caplog, content
    ):
        path = pathlib.Path(process.CONF.blazar_sched.snapshot_path)
        path.write_bytes(content)
        ledger.commit(make.host('h1'))
        process.ensure_started()
        assert eventually(lambda: hosts() == {'h1'})
        told = [
            r for r in caplog.records if r.name == kept_snapshot.__name__
            and r.levelno >= logging.WARNING
        ]
        assert len(told) == 1
        assert 'Ignoring' in told[0].getMessage()

    def test_snapshot_is_written(self, end_point, ledger, make):
        ledger.commit(make.host('h1'))
        process.ensure_started()
        path = process.CONF.blazar_sched.snapshot_path
        assert eventually(lambda: os.path.exists(path))
        with snapshot_file.reading(path) as kept:
            assert (kept.ledger, kept.revision) == (ledger.id, ledger.newest)
            assert abs(kept.written_at - time.time()) < DEADLINE

    def test_fresh_snapshot_file_is_not_written_by_another_worker(
        self, kept, end_point, ledger, make
    ):
        kept(age=1)
        ledger.commit(make.host('h2'))
        process.ensure_started()
        assert eventually(lambda: hosts() == {'h1', 'h2'})
        with snapshot_file.reading(
            process.CONF.blazar_sched.snapshot_path
        ) as left:
            assert left.revision == 1

    def test_unchanged_snapshot_is_not_written_again(
        self, kept, end_point, monkeypatch
    ):
        kept(age=60)
        path = process.CONF.blazar_sched.snapshot_path
        os.utime(path, (0, 0))
        before = os.stat(path).st_ino
        began = process.now()
        process.ensure_started()

        def written_at():
            with snapshot_file.reading(path) as found:
                return found.written_at

        assert eventually(lambda: written_at() >= began)
        assert os.stat(path).st_ino == before

    def test_one_that_cannot_be_used_is_replaced_at_once(
        self, configure, end_point, ledger, make
    ):
        path = pathlib.Path(process.CONF.blazar_sched.snapshot_path)
        path.write_bytes(b'damaged a moment ago')
        ledger.commit(make.host('h1'))
        process.ensure_started()

        def revision():
            try:
                with snapshot_file.reading(str(path)) as found:
                    return found.revision
            except ValueError:
                return None

        assert eventually(lambda: revision() == 1)

    def test_a_fifo_in_its_place_stops_nothing(
        self, configure, end_point, ledger, make
    ):
        os.mkfifo(process.CONF.blazar_sched.snapshot_path)
        ledger.commit(make.host('h1'))
        process.ensure_started()
        assert eventually(lambda: hosts() == {'h1'})

    def test_no_place_for_it_is_no_trouble(
        self, configure, end_point, ledger, make, tmp_path
    ):
        configure(snapshot_path=str(tmp_path / 'no' / 'such' / 'snapshot'))
        ledger.commit(make.host('h1'))
        process.ensure_started()
        assert eventually(lambda: hosts() == {'h1'})


class TestStart:
    """The decisions before there is a copy."""

    HOST = str(uuid.UUID(int=1))

    @pytest.fixture
    def path(self, configure):
        return pathlib.Path(process.CONF.blazar_sched.snapshot_path)

    @pytest.fixture
    def unusable(self, path, ledger, make):
        """Leave the snapshot file of a worker of another version."""
        ledger.commit(make.host(self.HOST))
        snapshot_file.write(
            str(path), ledger.id, ledger.newest, process.now(), ledger.items()
        )
        path.write_bytes(b'of another version')

    @pytest.fixture
    def slow(self, monkeypatch):
        """Delay the reading of the snapshot file until this is set."""
        gate = threading.Event()
        reading = snapshot_file.reading

        def slowly(path):
            assert gate.wait(DEADLINE)
            return reading(path)

        monkeypatch.setattr(snapshot_file, 'reading', slowly)
        yield gate
        gate.set()

    @pytest.fixture
    def kept(self, path, ledger, make):
        ledger.commit(make.host(self.HOST))
        snapshot_file.write(
            str(path), ledger.id, ledger.newest, process.now(), ledger.items()
        )

    def test_waits_for_the_file(self, configure, kept, slow):
        configure(start_timeout=DEADLINE)
        process.ensure_started()
        threading.Timer(0.1, slow.set).start()
        replica, stale = process.current()
        assert set(replica.hosts) == {self.HOST}
        assert not stale

    def test_waits_for_the_manager_where_there_is_no_file(
        self, configure, end_point, ledger, make
    ):
        configure(start_timeout=DEADLINE)
        ledger.commit(make.host(self.HOST))
        assert set(process.current()[0].hosts) == {self.HOST}

    def test_requests_wait_no_longer_than_start_timeout(
        self, configure, kept, slow
    ):
        """All requests together wait no longer than one."""
        configure(start_timeout=0.2)
        began = time.monotonic()
        for _ in range(100):
            assert process.current() == (None, True)
        assert time.monotonic() - began < DEADLINE / 2

    def test_start_does_not_wait_without_file_and_manager(
        self, configure, path, end_point
    ):
        """The file and the manager have failed: there may never be a copy."""
        configure(start_timeout=10 * DEADLINE)
        end_point.broken = {'version': 1}
        process.ensure_started()
        began = time.monotonic()
        assert process.current() == (None, True)
        assert time.monotonic() - began < DEADLINE

    def test_whoever_waits_is_let_go_by_a_stop(self, configure, kept, slow):
        configure(start_timeout=10 * DEADLINE)
        mine = process.ensure_started()
        waiting = threading.Thread(target=process.current)
        waiting.start()
        mine._stopping.set()
        slow.set()
        mine.stop()
        waiting.join(DEADLINE)
        assert not waiting.is_alive()

    def test_the_hosts_are_known_without_a_copy(self, unusable):
        process.ensure_started()
        assert process.current() == (None, True)
        assert process.reservable_hosts() == {self.HOST}

    def test_where_there_was_never_a_copy_they_are_not(self, configure):
        process.ensure_started()
        assert process.reservable_hosts() is None

    def test_a_list_that_cannot_be_used_is_told_of(
        self, unusable, path, caplog
    ):
        path.with_name('snapshot.hosts').write_bytes(b'not a uuid')
        process.ensure_started()
        assert process.reservable_hosts() is None
        assert [
            r for r in caplog.records
            if 'list of reservable hosts' in r.getMessage()
            and 'Ignoring' in r.getMessage()
        ]

    def test_the_copy_is_newer_than_the_list(
        self, unusable, end_point, ledger, make
    ):
        ledger.commit(make.host('h2'), gone=[('host', self.HOST)])
        process.ensure_started()
        assert eventually(lambda: hosts() == {'h2'})
        assert set(process.reservable_hosts()) == {'h2'}


class TestOptions:
    """An invalid option stops nova-scheduler from starting, with its name."""

    @pytest.mark.parametrize(
        'option, value', [('default_lifetime', 'an hour')]
    )
    def test_bad_text(self, configure, option, value):
        configure(**{option: value})
        with pytest.raises(exception.InvalidInput, match=option):
            process.prepare()

    def test_bad_choice(self, configure, tmp_path):
        conf = tmp_path / 'nova.conf'
        conf.write_text('[blazar_sched]\non_stale = ajar\n')
        process.CONF([], default_config_files=[str(conf)])
        try:
            with pytest.raises(ValueError, match='ajar'):
                process.prepare()
        finally:
            process.CONF.reset()
            process.CONF([], default_config_files=[])


def test_each_forked_process_has_its_own_live_puller():
    """F13: nova-scheduler forks workers, and forks them anew on SIGHUP."""
    script = pathlib.Path(__file__).parent / 'forking.py'
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', str(script)], capture_output=True,
        text=True, timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        'master: no puller', 'worker: 1 puller, hosts [h1]',
        'worker of a busy master: 1 puller, hosts [h1]',
        'worker: 1 puller, hosts [h1]', 'master: no puller',
    ]


class TestMetrics:
    """The metrics that a worker writes for Prometheus."""

    @pytest.fixture
    def written(self, configure, tmp_path):
        """Return a sample of the metrics file of the worker."""
        folder = tmp_path / 'metrics'
        folder.mkdir()
        configure(metrics_path=str(folder))

        def written(metric, *labels):
            name = process.ensure_started().name
            path = folder / f'blazar-sched-{name}.prom'
            if not path.exists():
                return None
            wanted = dict(zip(metric.labels, (name, *labels), strict=True))
            for family in parser.text_string_to_metric_families(
                path.read_text()
            ):
                for sample in family.samples:
                    if sample.labels == wanted and sample.name in (
                        metric.name, f'{metric.name}_total'
                    ):
                        return sample.value
            return None

        return written

    def test_how_the_replica_is(self, end_point, ledger, make, written):
        ledger.commit(make.host('h1'))
        process.ensure_started()
        assert eventually(lambda: written(metrics.REVISION) == 1)
        assert eventually(lambda: written(metrics.STALE) == 0)
        assert written(metrics.AGE) < DEADLINE
        assert written(metrics.SNAPSHOTS) == 1
        assert written(metrics.PULLS, 'done') >= 1

    def test_that_it_is_stale(self, end_point, ledger, make, written):
        ledger.commit(make.host('h1'))
        process.ensure_started()
        assert eventually(lambda: written(metrics.STALE) == 0)
        end_point.broken = {'version': wire.WIRE_VERSION}
        assert eventually(lambda: written(metrics.STALE) == 1)
        assert eventually(lambda: written(metrics.AGE) == float('inf'))
        assert written(metrics.PULLS, 'failed') >= 1
        assert written(metrics.REVISION) == 1

    def test_metrics_show_that_there_is_no_copy(self, written):
        process.ensure_started()
        assert eventually(lambda: written(metrics.STALE) == 1)
        assert written(metrics.REVISION) == 0

    def test_a_folder_that_is_not_there_stops_nothing(
        self, end_point, ledger, make, configure, tmp_path
    ):
        configure(metrics_path=str(tmp_path / 'none'))
        ledger.commit(make.host('h1'))
        process.ensure_started()
        assert eventually(lambda: hosts() == {'h1'})
        ledger.commit(make.host('h2'))
        assert eventually(lambda: hosts() == {'h1', 'h2'})

    def test_the_file_goes_with_the_worker(
        self, end_point, ledger, written, tmp_path
    ):
        process.ensure_started()
        assert eventually(lambda: written(metrics.STALE) is not None)
        process.stop()
        assert list((tmp_path / 'metrics').iterdir()) == []


class _Decided:
    """A decision that only has whether it is settled."""

    filter, outcome, seen, passed = 'AnyFilter', 'decided', 1, 0
    fixed = True

    def __init__(self, instance_uuid='i'):
        self.instance_uuid = instance_uuid
        self.settled = False

    def settle(self, replica, hosts):
        self.settled = True

    def explain(self, replica, host):
        return {'of': self.instance_uuid}


class TestDecisions:
    """The decisions that a worker keeps."""

    def test_decisions_are_settled_without_a_pull(
        self, end_point, ledger, make, configure, monkeypatch
    ):
        monkeypatch.setattr(threads, 'CHORES_PAUSE', 3600)
        configure(poll_interval=3600)
        mine = process.ensure_started()
        assert eventually(lambda: hosts() == set())
        pulls = mine.metrics.of(metrics.PULLS, 'done')
        before = pulls._value.get()
        for _ in range(5):
            many = [_Decided() for _ in range(decision_log.MANY_FRESH)]
            for each in many:
                process.note(each, 0.001)
            assert eventually(lambda many=many: all(d.settled for d in many))
        mine._thread.join(0.2)
        assert pulls._value.get() == before

    def test_unsettled_decisions_are_bounded(self):
        kept = decision_log.Decisions(lambda: 1000, lambda: None)
        for n in range(decision_log.MAX_FRESH + 5):
            kept.add(_Decided(str(n)))
        assert len(kept) == decision_log.MAX_FRESH
        assert kept.explain(None, '0') == []
        assert kept.explain(None, '5') == [{'of': '5'}]

    def test_decisions_are_counted(self, end_point):
        mine = process.ensure_started()
        process.note(_Decided(), 0.001)
        process.note(_Decided(), 0.001)

        def value(metric, suffix, **labels):
            return mine.metrics.registry.get_sample_value(
                metric.name + suffix,
                {'worker': mine.name, 'filter': 'AnyFilter', **labels},
            )

        assert value(metrics.DECISIONS, '_total', outcome='decided') == 2
        assert value(metrics.SEEN, '_total') == 2
        assert value(metrics.PASSED, '_total') == 0
        assert value(metrics.FIXED, '_total') == 2
        assert value(metrics.DECISION_SECONDS, '_count') == 2
        assert value(metrics.DECISION_SECONDS, '_sum') == 0.002
