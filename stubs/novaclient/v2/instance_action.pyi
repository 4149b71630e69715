# SPDX-License-Identifier: Apache-2.0
class InstanceAction:
    action: str
    message: str | None

class InstanceActionManager:
    def list(
        self, server: str, *, changes_since: str
    ) -> list[InstanceAction]: ...
