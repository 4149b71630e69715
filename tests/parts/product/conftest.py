# SPDX-License-Identifier: Apache-2.0
"""A cloud with products, and the options that name them."""

from tests.functional.api.conftest import api  # noqa: F401
from tests.unit.conf.conftest import load  # noqa: F401
