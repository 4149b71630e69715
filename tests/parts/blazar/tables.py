# SPDX-License-Identifier: Apache-2.0
"""What Blazar's tables add to the tables of the tests: nothing."""
