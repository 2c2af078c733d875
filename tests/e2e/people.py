# SPDX-License-Identifier: Apache-2.0
"""Operators at work: what waits for them, and their words about it, through payfactctl."""

import json

from payfact_stack import OPERATORS

FIRST, SECOND, THIRD = OPERATORS
EVIDENCE = ("--reason", "PSP_CONFIRMED", "--attachment", "mail-1=" + "ab" * 32)


def waiting(stack):
    return {row["request_id"]: row for row in json.loads(stack.ctl("approvals"))}


def word(stack, what, row, caller, *more):
    return stack.order(what, "--payment", row["payment_id"], "--request", row["request_id"], "--sha256", row["sha256"], *more,
                       caller=caller)  # fmt: skip


def ask(stack, command, payment, *options, caller=FIRST):
    """The request that this order has become."""
    before = set(waiting(stack))
    said = stack.order(command, "--payment", payment, *options, caller=caller)
    assert said[0] == "AWAITING_APPROVAL", said
    (row,) = [row for request, row in waiting(stack).items() if request not in before]
    return row


def two_approve(stack, row):
    assert word(stack, "approve", row, SECOND) == ("ACCEPTED", "APPROVAL_COUNTED")
    assert word(stack, "approve", row, THIRD) == ("ACCEPTED", "APPROVED")
