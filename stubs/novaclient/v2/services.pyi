# SPDX-License-Identifier: Apache-2.0
class Service:
    host: str
    zone: str

class ServiceManager:
    def list(self, host: str | None, binary: str) -> list[Service]: ...
