# SPDX-License-Identifier: Apache-2.0
"""Views, which show the manager's results in the API, one file per noun."""
