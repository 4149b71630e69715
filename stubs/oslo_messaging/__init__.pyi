# SPDX-License-Identifier: Apache-2.0
# The types of what is used of oslo.messaging, which has none itself.
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
from types import TracebackType
from typing import Any
from typing import Self
from typing import TypeVar

from oslo_config import cfg

F = TypeVar('F', bound=Callable[..., object])

class MessagingException(Exception): ...
class MessagingTimeout(MessagingException): ...
class MessageDeliveryFailure(MessagingException): ...
class DriverLoadFailure(MessagingException): ...
class InvalidTransportURL(MessagingException): ...
class NoSuchMethod(MessagingException): ...
class UnsupportedVersion(MessagingException): ...

class RemoteError(MessagingException):
    exc_type: str | None

class ExpectedException(Exception):
    exc_info: tuple[type[BaseException], BaseException, TracebackType]

class Transport:
    conf: cfg.ConfigOpts
    def cleanup(self) -> None: ...

class TransportURL:
    transport: str
    virtual_host: str | None
    hosts: list[Any]
    query: dict[str, str]
    @classmethod
    def parse(cls, conf: cfg.ConfigOpts, url: str | None = ...) -> Self: ...

class Target:
    def __init__(
        self,
        exchange: str | None = ...,
        topic: str | None = ...,
        namespace: str | None = ...,
        version: str | None = ...,
        server: str | None = ...,
        fanout: bool | None = ...,
    ) -> None: ...

class RPCClient:
    def prepare(
        self, timeout: float = ..., call_monitor_timeout: int | None = ...
    ) -> RPCClient: ...
    def call(
        self, ctxt: dict[str, Any], method: str, **kwargs: object
    ) -> object: ...
    def cast(
        self, ctxt: dict[str, Any], method: str, **kwargs: object
    ) -> None: ...

class NoOpSerializer: ...
class DefaultRPCAccessPolicy: ...

class RPCDispatcher:
    def __init__(
        self,
        endpoints: Sequence[object],
        serializer: NoOpSerializer,
        access_policy: type[DefaultRPCAccessPolicy],
    ) -> None: ...
    def dispatch(self, incoming: Any) -> object: ...

class MessageHandlingServer:
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def wait(self) -> None: ...

class NotificationFilter:
    def __init__(self, event_type: str) -> None: ...

class Notifier:
    def __init__(
        self, transport: Transport, publisher_id: str,
        serializer: NoOpSerializer = ...,
    ) -> None: ...
    def info(
        self, ctxt: object, event_type: str, payload: dict[str, Any]
    ) -> None: ...

def expected_exceptions(*exceptions: type[Exception]) -> Callable[[F], F]: ...
def get_rpc_transport(
    conf: cfg.ConfigOpts,
    url: str | None = ...,
    allowed_remote_exmods: Sequence[str] = ...,
) -> Transport: ...
def get_notification_transport(
    conf: cfg.ConfigOpts, url: str | None = ...
) -> Transport: ...
def get_rpc_client(
    transport: Transport,
    target: Target,
    timeout: float | None = ...,
    retry: int | None = ...,
    call_monitor_timeout: float | None = ...,
) -> RPCClient: ...
def get_rpc_server(
    transport: Transport,
    target: Target,
    endpoints: Sequence[object],
    executor: str = ...,
    access_policy: type[DefaultRPCAccessPolicy] = ...,
) -> MessageHandlingServer: ...
def get_notification_listener(
    transport: Transport,
    targets: Collection[Target],
    endpoints: Sequence[object],
    executor: str = ...,
    pool: str | None = ...,
) -> MessageHandlingServer: ...
def set_transport_defaults(control_exchange: str) -> None: ...
