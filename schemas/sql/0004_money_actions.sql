-- SPDX-License-Identifier: Apache-2.0
-- What captures, refunds, disputes and approvals need beside their tables. No service wrote any of these four before, so that the tables are
-- empty and NOT NULL needs no default there.
SET search_path = payfact;

-- The attempt that made the order SUCCEEDED: what a refund goes to that names none. 0 for orders from before: the core then takes the success
-- that is still live, or the only one.
ALTER TABLE payment_order ADD COLUMN paid_attempt_no smallint NOT NULL DEFAULT 0 CHECK (paid_attempt_no BETWEEN 0 AND 99);

-- The largest sum of refunds that the PSP has said of the attempt: a smaller one is stale, and a larger one is a refund only when no refund of
-- ours is open.
ALTER TABLE payment_amount ADD COLUMN refund_sum_minor bigint NOT NULL DEFAULT 0 CHECK (refund_sum_minor >= 0);

ALTER TABLE capture_order
    ADD COLUMN not_found_from timestamptz,                  -- as an attempt's
    ADD COLUMN retry_at       timestamptz,                  -- the PSP refused it for now: again under its own number then
    ADD COLUMN reason_code    text COLLATE "C",
    ADD CONSTRAINT capture_order_of_attempt CHECK (left(attempt_id, 26) = payment_id AND substr(attempt_id, 27, 1) = 'A'),
    ADD CONSTRAINT capture_order_of_payment CHECK (left(capture_id, 26) = payment_id);
ALTER TABLE refund_order
    ADD COLUMN not_found_from timestamptz,
    ADD COLUMN retry_at       timestamptz,
    ADD CONSTRAINT refund_order_of_attempt CHECK (left(attempt_id, 26) = payment_id AND substr(attempt_id, 27, 1) = 'A'),
    ADD CONSTRAINT refund_order_of_payment CHECK (left(refund_id, 26) = payment_id);

ALTER TABLE dispute
    ADD COLUMN funds text COLLATE "C" NOT NULL DEFAULT 'UNCHANGED' CHECK (funds IN ('UNCHANGED', 'WITHDRAWN', 'REINSTATED')),
    ADD CONSTRAINT dispute_of_attempt CHECK (left(attempt_id, 26) = payment_id AND substr(attempt_id, 27, 1) = 'A'),
    ADD CONSTRAINT dispute_of_payment CHECK (left(dispute_id, 26) = payment_id);

-- What was signed can be read again only with its writer's schema. An order has no version of its own to expect: it is compared by status.
ALTER TABLE approval_request
    ADD COLUMN writer_fingerprint bytea NOT NULL CHECK (octet_length(writer_fingerprint) = 8),
    ADD CONSTRAINT approval_request_of_command CHECK (sha256::bytea = sha256(command)),
    DROP CONSTRAINT approval_request_check,
    ADD CONSTRAINT approval_request_evidence CHECK (command_type = 'REQUEST_REFUND' OR
        (jsonb_array_length(attachments) >= 1 AND (expected_version IS NOT NULL OR aggregate_id = payment_id)));
CREATE INDEX approval_request_pending ON approval_request (payment_id) WHERE status = 'PENDING';

-- What was approved, and by whom, stays as it was: the request's own words, and each word about it.
CREATE FUNCTION refuse_other_request() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (to_jsonb(OLD) - 'status' - 'decided_at') IS DISTINCT FROM (to_jsonb(NEW) - 'status' - 'decided_at') OR OLD.status <> 'PENDING' THEN
        RAISE EXCEPTION 'an approval request changes only its status, once' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION refuse_other_request() FROM PUBLIC;
CREATE TRIGGER approval_request_kept BEFORE UPDATE ON approval_request FOR EACH ROW EXECUTE FUNCTION refuse_other_request();
CREATE TRIGGER approval_request_not_deleted BEFORE DELETE ON approval_request FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER approval_append_only BEFORE UPDATE OR DELETE ON approval FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- A merchant's number of an action, over all its payments: asked before each command that makes one.
-- (UNIQUE (merchant_id, idempotency_key) of both tables serves it.)

GRANT SELECT (paid_attempt_no) ON payment_order TO payfact_operator;
