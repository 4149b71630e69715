# SPDX-License-Identifier: Apache-2.0
"""A manager on a real ledger, with what is around it in memory."""

from tests.functional.conftest import options  # noqa: F401
from tests.functional.conftest import service  # noqa: F401
from tests.functional.manager.conftest import conf  # noqa: F401
from tests.functional.manager.conftest import killed  # noqa: F401
from tests.functional.manager.conftest import limit  # noqa: F401
from tests.functional.manager.conftest import on  # noqa: F401
from tests.functional.manager.conftest import slots  # noqa: F401
from tests.functional.manager.conftest import whole  # noqa: F401
from tests.functional.manager.conftest import world  # noqa: F401
