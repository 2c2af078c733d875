-- SPDX-License-Identifier: Apache-2.0
-- A final state, and what was taken and given back, stay as they are whatever a service's code, or somebody with its password, tries by SQL.
-- Who an order, an attempt or a money action is for, and how much it is, no service can write after the insert. A final state and an amount
-- move only in a transaction that also writes the history row which says so; what only CONTROLLED evidence may change needs the approved
-- request with the words of two people besides. Checked at COMMIT, so that the order of the statements is free. Who owns the tables is not
-- asked: that is the installer, not a service.
SET search_path = payfact;

REVOKE UPDATE ON payment_order, payment_attempt, payment_amount, capture_order, refund_order, dispute, approval_request FROM payfact_processor;
GRANT UPDATE (status, reason_code, intent, intent_command_id, intent_route_no, failover_until, expires_at, retry_until_expiry, expiry_asked,
    version, event_sequence, attempt_count, capture_count, refund_count, dispute_count, paid_attempt_no, updated_at)
    ON payment_order TO payfact_processor;
GRANT UPDATE (status, live, override_request_id, result_certainty, last_accepted_event_id, version, query_count, not_found_count, not_found_from,
    known_at, unknown_since, submitted_at, action_no, confirm_no, cancel_no, action_expires_at, psp_expires_at, authorization_expires_at,
    cancel_cause, failure_class, failure_code, settled_at, updated_at)
    ON payment_attempt TO payfact_processor;
GRANT UPDATE (authorized_minor, capture_reserved_minor, captured_minor, refund_reserved_minor, refunded_minor, withdrawn_minor, refund_sum_minor,
    updated_at) ON payment_amount TO payfact_processor;
GRANT UPDATE (status, result_certainty, provider_reference, last_accepted_event_id, version, query_count, not_found_count, not_found_from,
    unknown_since, retry_at, give_up_at, failure_class, failure_code, settled_at, updated_at)
    ON capture_order, refund_order TO payfact_processor;
GRANT UPDATE (amount_minor, status, funds, is_inquiry, withdrawn_minor, evidence_due_at, result_certainty, last_accepted_event_id, version,
    updated_at) ON dispute TO payfact_processor;
GRANT UPDATE (status, decided_at) ON approval_request TO payfact_processor;

-- History rows bear the transaction's time, so that one look at the primary key finds those of this transaction.
CREATE FUNCTION refuse_undecided() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    p_id    text := CASE TG_TABLE_NAME WHEN 'payment_order' THEN NEW.payment_id ELSE to_jsonb(NEW) ->> TG_ARGV[0] END;
    p_least smallint := CASE WHEN OLD.status = ANY (string_to_array(TG_ARGV[2], ' ')) THEN 6 ELSE TG_ARGV[1]::smallint END;
BEGIN
    IF EXISTS (SELECT FROM payfact.payment_state_history h
               WHERE h.payment_id = NEW.payment_id AND h.decided_at = now() AND h.xmin = pg_current_xact_id()::xid
                 AND h.aggregate_id = p_id AND h.to_status = NEW.status AND h.verdict = 'APPLY' AND h.evidence_level >= p_least)
       AND (p_least < 6 OR
            EXISTS (SELECT FROM payfact.approval_request r
                    WHERE r.payment_id = NEW.payment_id AND r.status = 'APPROVED' AND r.decided_at = now()
                      AND (SELECT count(*) FROM payfact.approval a WHERE a.request_id = r.request_id AND a.approves) >= 2))
       OR pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '"%" is final: no decision of this transaction moves it to %', p_id, NEW.status USING ERRCODE = '42501';
END $$;
REVOKE ALL ON FUNCTION refuse_undecided() FROM PUBLIC;

-- Arguments: the row's id, the least evidence, and the states that only CONTROLLED leaves.
CREATE CONSTRAINT TRIGGER payment_order_final AFTER UPDATE ON payment_order DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status IN ('SUCCEEDED', 'FAILED', 'CANCELED', 'EXPIRED') AND NEW.status <> OLD.status)
    EXECUTE FUNCTION refuse_undecided('payment_id', '6', 'SUCCEEDED FAILED CANCELED EXPIRED');
CREATE CONSTRAINT TRIGGER payment_attempt_final AFTER UPDATE ON payment_attempt DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status IN ('SUCCEEDED', 'FAILED', 'CANCELED') AND NEW.status <> OLD.status)
    EXECUTE FUNCTION refuse_undecided('attempt_id', '3', 'SUCCEEDED');
CREATE CONSTRAINT TRIGGER capture_order_final AFTER UPDATE ON capture_order DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status IN ('SUCCEEDED', 'FAILED', 'CANCELED', 'REVERSED') AND NEW.status <> OLD.status)
    EXECUTE FUNCTION refuse_undecided('capture_id', '2', '');
CREATE CONSTRAINT TRIGGER refund_order_final AFTER UPDATE ON refund_order DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.status IN ('SUCCEEDED', 'FAILED', 'CANCELED', 'REVERSED') AND NEW.status <> OLD.status)
    EXECUTE FUNCTION refuse_undecided('refund_id', '2', '');

CREATE FUNCTION refuse_unsaid_amount() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM payfact.payment_state_history h
               WHERE h.payment_id = NEW.payment_id AND h.decided_at = now() AND h.xmin = pg_current_xact_id()::xid)
       OR pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'no decision of this transaction changes the amounts of "%" in %', NEW.attempt_id, TG_TABLE_NAME USING ERRCODE = '42501';
END $$;
REVOKE ALL ON FUNCTION refuse_unsaid_amount() FROM PUBLIC;

CREATE CONSTRAINT TRIGGER payment_amount_said AFTER UPDATE ON payment_amount DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN ((OLD.authorized_minor, OLD.capture_reserved_minor, OLD.captured_minor, OLD.refund_reserved_minor, OLD.refunded_minor, OLD.withdrawn_minor)
       <> (NEW.authorized_minor, NEW.capture_reserved_minor, NEW.captured_minor, NEW.refund_reserved_minor, NEW.refunded_minor, NEW.withdrawn_minor))
    EXECUTE FUNCTION refuse_unsaid_amount();
CREATE CONSTRAINT TRIGGER payment_amount_said_at_first AFTER INSERT ON payment_amount DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.authorized_minor + NEW.captured_minor + NEW.refunded_minor + NEW.withdrawn_minor > 0)
    EXECUTE FUNCTION refuse_unsaid_amount();
CREATE CONSTRAINT TRIGGER dispute_said AFTER UPDATE ON dispute DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN ((OLD.amount_minor, OLD.withdrawn_minor, OLD.status) <> (NEW.amount_minor, NEW.withdrawn_minor, NEW.status))
    EXECUTE FUNCTION refuse_unsaid_amount();
