# SPDX-License-Identifier: Apache-2.0
"""Usage: what reservations have reserved and used, measured and reported."""
