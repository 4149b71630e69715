# SPDX-License-Identifier: Apache-2.0
"""What goes over the message bus: calls, notifications and news."""
