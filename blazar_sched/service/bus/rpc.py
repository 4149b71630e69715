# SPDX-License-Identifier: Apache-2.0
"""RPC to the manager: the topic, the client and the server.

Arguments and answers are JSON primitives. Refusals are sent as the classes of
domain.exception, so a caller may catch them by class. Managers share the
topic, so each call goes to one of the managers.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import functools
import os
import socket
import threading
import time
from typing import Any

from kombu import exceptions as kombu_exceptions
from oslo_concurrency import lockutils
from oslo_config import cfg
from oslo_context import context
from oslo_log import log
import oslo_messaging
from oslo_messaging.rpc import server as rpc_server

from blazar_sched.domain import exception
from blazar_sched.replica import wire
from blazar_sched.service import cause
from blazar_sched.service import faults
from blazar_sched.service import metrics as service_metrics
from blazar_sched.service import sending
from blazar_sched.service.bus import calls
from blazar_sched.service.metrics import CALL_SECONDS
from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

Context = dict[str, Any]

EXCHANGE = wire.EXCHANGE
TOPIC = wire.TOPIC
# The version of the calls of the API: see CONTRIBUTING for when it is raised.
VERSION = '3.0'
RETRIES = wire.RETRIES
# The seconds that a start waits for the bus, and a stop for running calls.
START_TIMEOUT = 2.0
STOP_TIMEOUT = 5.0
# The seconds for which `Client.connect` waits for an answer, longer than any
# bus that works takes, and pauses before the next attempt.
CONNECT_TIMEOUT = 10.0
CONNECT_PAUSE = 0.5
# The seconds for which `Client.check` waits: load balancers do not wait long.
CHECK_TIMEOUT = 5.0
# A manager sends two heartbeats in this many seconds for each call that it
# processes. A manager that sends no heartbeats is considered dead.
HEARTBEAT_TIMEOUT = 3
# The maximum number of managers to which a repeatable call is sent in turn.
ATTEMPTS = 3


def process_name() -> str:
    """Return the name by which logs and messages name this process."""
    return f'{socket.gethostname()}-{os.getpid()}'


def transport(
    conf: cfg.ConfigOpts, part: str = 'command'
) -> oslo_messaging.Transport:
    """Return the transport that `conf` names ([DEFAULT] transport_url).

    :param part: the part of the service, which has queues of its own
    :raises oslo_config.cfg.Error: if there is no such transport
    """
    # The queue manager of oslo.messaging names queues by the process, which is
    # the console script for each part, and it takes a lock whose folder the
    # global configuration names.
    conf.set_default(
        'processname', f'blazar-sched-{part}', 'oslo_messaging_rabbit'
    )
    if lock_path := lockutils.get_lock_path(conf):
        lockutils.set_defaults(lock_path)
    with _naming('[DEFAULT] transport_url'):
        return oslo_messaging.get_rpc_transport(
            conf, allowed_remote_exmods=[exception.__name__]
        )


def notifications(conf: cfg.ConfigOpts) -> oslo_messaging.Transport:
    """Return the transport for notifications, by default the RPC transport.

    :raises oslo_config.cfg.Error: if there is no such transport
    """
    with _naming('[oslo_messaging_notifications] transport_url'):
        return oslo_messaging.get_notification_transport(conf)


@contextlib.contextmanager
def _naming(option: str) -> Iterator[None]:
    """Name the option in the error for a URL that cannot be used.

    No part of the URL is in the error, because the URL contains a password.
    """
    try:
        yield
    except (
        ImportError,
        oslo_messaging.DriverLoadFailure,
        oslo_messaging.InvalidTransportURL,
    ) as e:
        raise cfg.Error(f'{option} cannot be used: {e}') from e
    except ValueError:
        raise cfg.Error(f'{option} is not the URL of a message bus') from None


def _repeat(
    attempts: int, call: Callable[[int], object], timeout: float
) -> object:
    """Return the answer of `call`, repeated while managers die of the call.

    :param call: is given the number of the sending, from 1 on
    :param timeout: seconds after which `call` gives up on a manager that is
        alive
    :raises MessagingTimeout: if the last manager did not answer either
    """
    for number in range(1, attempts):
        began = time.monotonic()
        try:
            return call(number)
        except oslo_messaging.MessagingTimeout as e:
            # A manager that sends heartbeats is alive and only slow.
            if time.monotonic() - began >= timeout:
                raise
            LOG.warning('Retrying the call on another manager: %s', e)
    return call(attempts)


class Client:
    """A client of the manager that threads can share.

    :param bus: the transport that `transport` returned
    :param timeout: seconds to wait, default [DEFAULT] rpc_response_timeout
    :param metrics: count the calls
    """

    def __init__(
        self, bus: oslo_messaging.Transport, timeout: float | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        target = oslo_messaging.Target(
            exchange=EXCHANGE, topic=TOPIC, version=VERSION
        )
        self._client = oslo_messaging.get_rpc_client(
            bus, target, timeout=timeout, retry=RETRIES,
            call_monitor_timeout=HEARTBEAT_TIMEOUT,
        )
        self._bus = bus
        self._timeout = timeout or bus.conf.rpc_response_timeout
        self._connecting = False
        self._metrics = metrics or service_metrics.new()

    def connect(self) -> None:
        """Refuse all calls at once until a manager has answered once.

        Where the broker has never been reached, a call would wait for the
        broker without end, and would be made long after its caller is gone.
        """
        self._connecting = True
        connecting = _thread(self._connect)
        connecting.start()
        connecting.join(START_TIMEOUT)

    def call(self, ctxt: Context, method: str, **kwargs: object) -> object:
        """Call `method` of the manager's endpoint and return the answer.

        A manager that is killed has taken the call off the queue, and never
        answers. A repeatable call is then sent to another manager.

        :param ctxt: an oslo.context as a dict
        :raises BlazarSchedError: the subclass that the manager raised
        :raises Unavailable: if no manager answers in time
        """
        attempts = ATTEMPTS if calls.can_be_repeated(method, kwargs) else 1
        is_numbered = attempts > 1 and not calls.only_reads(method)

        def call(number: int) -> object:
            more = {sending.NUMBER: number} if is_numbered else {}
            return self._client.call({**ctxt, **more}, method, **kwargs)

        return self._call(
            functools.partial(_repeat, attempts, call, self._timeout)
        )

    def check(self) -> None:
        """Check that a manager answers soon, and reaches the database.

        :raises Unavailable: otherwise
        """
        hasty = self._client.prepare(timeout=CHECK_TIMEOUT)
        self._call(lambda: hasty.call({}, 'check'))

    def _call(self, call: Callable[[], object]) -> object:
        outcome = service_metrics.FAILED
        try:
            answer = self._answer(call)
            outcome = service_metrics.ANSWERED
            return answer
        except exception.BlazarSchedError as e:
            if not isinstance(e, exception.Unavailable):
                outcome = service_metrics.REFUSED
            raise
        finally:
            self._metrics.of(service_metrics.BUS_CALLS, outcome).inc()

    def _answer(self, call: Callable[[], object]) -> object:
        if self._connecting:
            raise exception.Unavailable('no manager has responded yet')
        try:
            return call()
        except (
            oslo_messaging.RemoteError, oslo_messaging.UnsupportedVersion
        ) as e:
            # A manager of an older version does not say Unavailable itself.
            if oslo_messaging.UnsupportedVersion.__name__ not in (
                type(e).__name__, getattr(e, 'exc_type', None)
            ):
                raise
            raise exception.Unavailable(
                f'the manager is of another version than this API ({VERSION})'
            ) from e
        except (
            oslo_messaging.MessagingTimeout,
            oslo_messaging.MessageDeliveryFailure,
        ) as e:
            raise exception.Unavailable('no manager responded') from e
        except (kombu_exceptions.KombuError, OSError) as e:
            # oslo.messaging does not wrap these errors while it connects.
            raise exception.Unavailable(
                'the message broker is unreachable'
            ) from e

    def _connect(self) -> None:
        Background(
            _server(self._bus, wire.API_TOPIC, [Reporting(self._bus, 'api')])
        ).start()
        # On a slow bus, an answer takes longer than two heartbeats.
        patient = self._client.prepare(
            timeout=CONNECT_TIMEOUT, call_monitor_timeout=None
        )
        while self._connecting:
            try:
                patient.call({}, 'ping')
                self._connecting = False
            except (
                exception.BlazarSchedError,
                oslo_messaging.RemoteError,
                oslo_messaging.UnsupportedVersion,
            ):
                # A manager is there: the answer to each call says what is
                # wrong.
                self._connecting = False
            except Exception as e:
                # Any error is retried: without a manager the API is useless.
                LOG.warning('No manager has responded yet, retrying: %s', e)
                time.sleep(CONNECT_PAUSE)
        LOG.info('A manager has responded')


class Local:
    """A client of a manager in this process, with the methods of `Client`.

    No bus is used, because the in-memory bus polls twenty times a second.
    """

    def __init__(self, endpoint: 'Counted') -> None:
        self._endpoint = endpoint

    def call(self, ctxt: Context, method: str, **kwargs: object) -> object:
        """Call `method` of the manager's endpoint and return the answer.

        :raises BlazarSchedError: the error that the manager raised
        """
        try:
            return getattr(self._endpoint, method)(ctxt, **kwargs)
        except oslo_messaging.ExpectedException as e:
            raise e.exc_info[1] from None

    def check(self) -> None:
        """Check that the manager reaches the database.

        :raises Unavailable: otherwise
        """
        self.call({}, 'check')


class Counted:
    """An endpoint whose calls are counted and timed.

    The log has a line for each refusal, with the reason, and for each change
    that a client of the API has requested. An API of the next version may pass
    more arguments, of which None means what this version does.

    :param version: the version of the calls
    :param methods: the methods that can be called, None for all
    :param overtake: called before a sending that is not the first is handled
    """

    def __init__(
        self, endpoint: calls.Calls, metrics: Metrics, version: str = VERSION,
        methods: Collection[str] | None = None,
        overtake: Callable[[sending.Sending], object] = bool,
    ) -> None:
        self._overtake = overtake
        self.target = oslo_messaging.Target(version=version)
        self._endpoint = endpoint
        self._metrics = metrics
        self._methods = methods

    def __getattr__(self, name: str) -> Callable[..., object]:
        is_open = self._methods is None or name in self._methods
        method: object = getattr(self._endpoint, name, None)
        if name.startswith('_') or not is_open or not callable(method):
            raise AttributeError(name)
        return functools.partial(self._call, name, method)

    def _call(
        self, name: str, method: Callable[..., object], ctxt: Context, /,
        **kwargs: object,
    ) -> object:
        began = time.monotonic()
        outcome = service_metrics.FAILED
        faults.point(f'{name}:called')
        try:
            _require_known(name, kwargs)
            sent = _sending(ctxt)
            with sending.handling(sent), cause.named(name):
                if sent is not None and sent.number > 1:
                    self._overtake(sent)
                answer = method(**kwargs)
            faults.point(f'{name}:answering')
            outcome = service_metrics.ANSWERED
            if 'request_id' in ctxt and not calls.only_reads(name):
                LOG.info('Done: %s', _shown(name, kwargs, answer))
            return answer
        except exception.BlazarSchedError as e:
            outcome = service_metrics.REFUSED
            self._metrics.of(service_metrics.REFUSALS, name, e.name).inc()
            LOG.info(
                'Refused: %s: %s', _shown(name, kwargs), exception.reason(e)
            )
            # A normal answer: not logged as a failure of the manager.
            raise _expected(exception.portable(e)) from e
        finally:
            self._metrics.of(CALL_SECONDS, name, outcome).observe(
                time.monotonic() - began
            )


def _expected(
    error: exception.BlazarSchedError
) -> oslo_messaging.ExpectedException:
    """Return the exception with which an endpoint answers an error."""
    try:
        raise error
    except exception.BlazarSchedError:
        return oslo_messaging.ExpectedException()


def _sending(ctxt: Context) -> sending.Sending | None:
    """Return the sending of a call, None for a call that is sent once."""
    call_id, number = ctxt.get('request_id'), ctxt.get(sending.NUMBER)
    if call_id is None or number is None:
        return None
    return sending.Sending(call_id, number)


def _require_known(name: str, kwargs: dict[str, object]) -> None:
    """Remove the arguments that a call does not have in this version.

    :raises Unavailable: if such an argument is not None
    """
    known = calls.parameters(name)
    if known is None:
        return
    for unknown in kwargs.keys() - known.keys():
        if kwargs.pop(unknown) is not None:
            raise exception.Unavailable(
                f'{unknown}: not all managers are upgraded yet'
            )


def _shown(
    name: str, kwargs: Mapping[str, object], answer: object = None
) -> str:
    """Return a call as the log shows it, with the id of what it has made."""
    made = answer.get('id') if isinstance(answer, dict) else None
    shown = {
        k: v for k, v in {**kwargs, 'id': made}.items()
        if isinstance(v, str | int)
    }
    return ' '.join([name, *(f'{k}={v}' for k, v in shown.items())])


class Background:
    """A server of oslo.messaging that starts and stops in the background."""

    def __init__(self, server: oslo_messaging.MessageHandlingServer) -> None:
        self._server = server
        self._starting = _thread(self._start)
        self._lock = threading.Lock()
        self._started = self._stopped = False

    def start(self) -> None:
        """Begin to handle messages, once the broker can be reached."""
        self._starting.start()
        self._starting.join(START_TIMEOUT)
        if self._starting.is_alive():
            LOG.warning('The message broker has not responded yet')

    def stop(self) -> None:
        """Accept no more messages, and wait for messages being handled.

        Messages whose handling takes longer than some seconds are abandoned.
        """
        with self._lock:
            self._stopped = True
            if not self._started:
                # There is nothing to wait for: a server that still starts
                # stops by itself.
                return
        stopping = _thread(self._stop)
        stopping.start()
        stopping.join(STOP_TIMEOUT)
        if stopping.is_alive():
            LOG.warning('Stopped before all received messages were handled')

    def _start(self) -> None:
        self._server.start()
        with self._lock:
            self._started = True
            late = self._stopped
        if late:
            self._stop()
        else:
            LOG.info('Messages are being received')

    def _stop(self) -> None:
        self._server.stop()
        self._server.wait()


class _Contexts(oslo_messaging.NoOpSerializer):
    """A serializer that names the request in the log lines about a call."""

    def deserialize_context(self, ctxt: Context) -> Context:
        # The new context becomes this thread's context until its next call.
        context.RequestContext.from_dict(ctxt)
        return ctxt


class Reporting:
    """The endpoint of a manager or an API that reports its versions.

    :param part: ``manager`` or ``api``
    """

    target = oslo_messaging.Target(version=wire.RPC_VERSION)

    def __init__(self, bus: oslo_messaging.Transport, part: str) -> None:
        self._part = part
        self._client = oslo_messaging.get_rpc_client(
            bus,
            oslo_messaging.Target(
                exchange=EXCHANGE, topic=wire.ANSWERS_TOPIC,
                version=wire.RPC_VERSION, fanout=True,
            ),
            retry=RETRIES,
        )

    def report(self, ctxt: Context, question: str) -> None:
        self._client.cast(
            {}, wire.ANSWER_METHOD, question=question, worker=process_name(),
            body={'part': self._part, 'rpc': VERSION, **wire.versions()},
        )


_refusing: Callable[[Any], Any] = oslo_messaging.expected_exceptions(
    exception.Unavailable
)


class _Dispatcher(oslo_messaging.RPCDispatcher):
    """A dispatcher that refuses the calls of other versions in words."""

    @_refusing
    def dispatch(self, incoming: Any) -> Any:
        try:
            return super().dispatch(incoming)
        except (
            oslo_messaging.NoSuchMethod, oslo_messaging.UnsupportedVersion
        ) as e:
            version = incoming.message.get('version')
            LOG.warning('Refused a call of RPC version %s: %s', version, e)
            raise exception.Unavailable(
                f'{incoming.message.get("method")}: not all managers are '
                'upgraded yet' if version == VERSION else
                f'the manager is of another version ({VERSION}) than this API '
                f'({version})'
            ) from e


class Server(Background):
    """A server that answers calls with `endpoints`, in threads."""

    def __init__(
        self, bus: oslo_messaging.Transport, endpoints: Sequence[Any]
    ) -> None:
        super().__init__(_server(bus, TOPIC, endpoints))


def _server(
    bus: oslo_messaging.Transport, topic: str, endpoints: Sequence[Any]
) -> oslo_messaging.MessageHandlingServer:
    return rpc_server.RPCServer(
        bus,
        oslo_messaging.Target(
            exchange=EXCHANGE, topic=topic, server=socket.gethostname()
        ),
        _Dispatcher(
            endpoints, _Contexts(), oslo_messaging.DefaultRPCAccessPolicy
        ),
        'threading',
    )


def _thread(do: Callable[[], object]) -> threading.Thread:
    return threading.Thread(target=do, name='rpc', daemon=True)
