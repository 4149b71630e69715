# SPDX-License-Identifier: Apache-2.0
from oslo_config import cfg

def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]: ...
