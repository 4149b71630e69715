# SPDX-License-Identifier: Apache-2.0
"""Series: leases that recur by a rule of RFC 5545 in a time zone."""
