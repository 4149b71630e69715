# SPDX-License-Identifier: Apache-2.0
from oslo_messaging import MessageHandlingServer
from oslo_messaging import RPCDispatcher
from oslo_messaging import Target
from oslo_messaging import Transport

class RPCServer(MessageHandlingServer):
    def __init__(
        self,
        transport: Transport,
        target: Target,
        dispatcher: RPCDispatcher,
        executor: str,
    ) -> None: ...
