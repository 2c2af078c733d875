-- SPDX-License-Identifier: Apache-2.0
-- When a deadline's row was set by a decision; recovery, which moves due_at, leaves it alone. The row behind a question to the PSP ends with
-- an answer that was asked for after the question, never with one that was on its way already.
SET search_path = payfact;

ALTER TABLE payment_deadline ADD COLUMN set_at timestamptz NOT NULL DEFAULT now();
