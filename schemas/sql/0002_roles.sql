-- SPDX-License-Identifier: Apache-2.0
-- One role per service with least rights. What a role lacks here it cannot do, whatever its code tries.
SET search_path = payfact;

-- Roles belong to the cluster, not to the database: made if missing, without LOGIN; the installer grants them to login users. ingest's relay
-- role and an ingest/webhook without `strict` accounts need none.
DO $$
DECLARE r text;
BEGIN
    FOREACH r IN ARRAY ARRAY['payfact_webhook', 'payfact_psp', 'payfact_processor', 'payfact_shadow', 'payfact_recovery', 'payfact_publisher',
                             'payfact_operator'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r) THEN        -- an installer without CREATEROLE makes them beforehand
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', r);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- another database of the cluster at the same moment
            END;
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA payfact TO %I', r);
        EXECUTE format('GRANT SELECT ON schema_migration TO %I', r);   -- services refuse to start on an older schema
    END LOOP;
END $$;

-- ingest/webhook: only accounts with `strict` answers, one indexed read
GRANT SELECT (merchant_request_no, psp, psp_account, amount_minor, currency) ON payment_attempt TO payfact_webhook;

-- ingest/psp: the gate row of its job; it cannot make, close or delete one
GRANT SELECT ON psp_request TO payfact_psp;
GRANT UPDATE (sending_at, sent_by, sends, last_send_at, endpoint, request, request_key_id, replay_until, finished_at, outcome, outcome_key_id)
    ON psp_request TO payfact_psp;

-- processor: every business table, and nothing it must not be able to rewrite
GRANT SELECT, INSERT, UPDATE ON payment_order, payment_attempt, payment_amount, capture_order, refund_order, refund_day, dispute,
    approval_request, manual_case TO payfact_processor;
GRANT SELECT, INSERT ON payment_route, payment_route_params, attempt_redirect, attempt_reference, inbox_key, approval, payment_state_history, settlement_entry, audit_log TO payfact_processor;
GRANT SELECT, INSERT, UPDATE (payment_id, status, delivery_count, last_seen_at) ON channel_event TO payfact_processor;
GRANT SELECT, INSERT, UPDATE (status, reason_code, answer, decided_at) ON command TO payfact_processor;
GRANT SELECT, INSERT, UPDATE (closed_at) ON psp_request TO payfact_processor;
GRANT SELECT, INSERT, UPDATE, DELETE ON payment_deadline TO payfact_processor;
GRANT SELECT, INSERT, DELETE ON route_pause TO payfact_processor;
GRANT SELECT, INSERT, UPDATE (payload, headers, attempts, available_at, dead_at, dead_reason) ON payment_outbox TO payfact_processor; -- UPDATE: EventWithheld
GRANT SELECT ON payment_total TO payfact_processor;
GRANT USAGE ON SEQUENCE channel_event_id_seq, payment_outbox_id_seq TO payfact_processor;

-- processor --shadow: reads what it compares with
GRANT SELECT ON payment_order, payment_route, payment_route_params, attempt_redirect, payment_attempt, attempt_reference, payment_amount, capture_order, refund_order,
    refund_day, dispute, inbox_key, channel_event, psp_request, payment_deadline, command, payment_state_history, approval_request, approval, manual_case, route_pause TO payfact_shadow;

-- recovery: reads; moves deadlines; writes reconciliation. It decides nothing: it sends queries and inputs.
GRANT SELECT ON payment_deadline, payment_order, payment_attempt, attempt_reference, payment_amount, payment_total, capture_order, refund_order,
    dispute, approval_request, manual_case, route_pause, publisher_lease, recon_run, recon_line, recon_difference, settlement_entry TO payfact_recovery;
GRANT SELECT (job_id, payment_id, action_id, kind, not_after, sending_at, sends, last_send_at, closed_at, replay_until, finished_at)
    ON psp_request TO payfact_recovery;
GRANT SELECT (payment_id, route_no, psp, psp_account, method, failover_on_not_found) ON payment_route TO payfact_recovery, payfact_operator;
GRANT SELECT (id, received_month, psp, psp_account, transport_key, payment_id, kind, source, status, delivery_count, received_at, first_seen_at)
    ON channel_event TO payfact_recovery;
GRANT SELECT (shard, id, topic, key, created_at, attempts, available_at, dead_at, dead_reason) ON payment_outbox TO payfact_recovery;
GRANT UPDATE (due_at, lease_until, tries) ON payment_deadline TO payfact_recovery;
GRANT INSERT, UPDATE ON recon_run TO payfact_recovery;
GRANT INSERT, DELETE ON recon_line, recon_difference TO payfact_recovery;
GRANT EXECUTE ON FUNCTION make_partitions(integer) TO payfact_recovery;

-- publisher: the outbox's bookkeeping; it cannot add or change a message
GRANT SELECT, DELETE, UPDATE (attempts, available_at, dead_at, dead_reason) ON payment_outbox TO payfact_publisher;
GRANT SELECT, INSERT, UPDATE ON publisher_lease TO payfact_publisher;
GRANT SELECT ON SEQUENCE payment_outbox_id_seq TO payfact_publisher;

-- payfactctl: reads all but sealed or secret columns; raw evidence only through read_evidence
GRANT SELECT ON payment_attempt, attempt_reference, payment_amount, payment_total, capture_order, refund_order, refund_day, dispute, inbox_key, command,
    payment_state_history, publisher_lease, payment_deadline, approval_request, approval, manual_case, route_pause, recon_run, recon_line,
    recon_difference, settlement_entry, audit_log TO payfact_operator;
GRANT SELECT (payment_id, merchant_id, merchant_order_no, amount_minor, currency, capture_mode, status, reason_code, intent, intent_command_id,
    intent_route_no, failover_until, expires_at, retry_until_expiry, expiry_asked, version, event_sequence, attempt_count, capture_count, refund_count, dispute_count,
    created_by, traceparent, created_at, updated_at, description) ON payment_order TO payfact_operator;
GRANT SELECT (id, received_month, psp, psp_account, transport_key, input_id, kind, source, payment_id, business_key, key_id, sha256, verification,
    status, delivery_count, occurred_at, received_at, first_seen_at, last_seen_at, trace_id) ON channel_event TO payfact_operator;
GRANT SELECT (job_id, payment_id, action_id, kind, digest, not_after, sending_at, sent_by, sends, last_send_at, closed_at, endpoint,
    replay_until, finished_at) ON psp_request TO payfact_operator;
GRANT SELECT (shard, id, topic, key, headers, created_at, attempts, available_at, dead_at, dead_reason) ON payment_outbox TO payfact_operator;
GRANT EXECUTE ON FUNCTION read_evidence(text, text, text, text, text, text) TO payfact_operator;
GRANT SELECT (attempt_id, action_no, key_id, created_at) ON attempt_redirect TO payfact_operator;
