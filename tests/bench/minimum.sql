-- SPDX-License-Identifier: Apache-2.0
-- P2's baseline, for pgbench: one event is one transaction, with the least that an event needs: its inbox key and row, the payment's
-- compare and set, one row of history, one of the outbox. Pipelined. Variables: clients, payments, version (of all payments).
\set i :i + 1
\set at :i * :clients + :client_id
\set payment :at % :payments
\set pass :at / :payments
\startpipeline
BEGIN;
INSERT INTO payfact.inbox_key (key, received_month, channel_event_id) VALUES
    (substr(sha256(int8send(:at::int8)), 1, 16), date_trunc('month', now() AT TIME ZONE 'UTC')::date, 1000000000 + :at::int8);
INSERT INTO payfact.channel_event (id, received_month, psp, psp_account, transport_key, input_id, kind, source, payment_id, business_key,
        body, key_id, sha256, normalized, verification, status, occurred_at, received_at, first_seen_at, last_seen_at, trace_id)
    SELECT 1000000000 + :at::int8, date_trunc('month', now() AT TIME ZONE 'UTC')::date, 'stripe', 'stripe-a', 'evt_' || p || 'p', p,
        'PSP_EVENT', 'WEBHOOK', p, 'pi_3P' || p || '||ATTEMPT_PROCESSING|processing', substr(x || x || x || x || x || x || x || x || x || x, 1, 628),
        'test-1', substr(x, 1, 32), substr(x || x || x || x || x || x || x || x, 1, 420), 'whsec-a', 'DECIDED', now(), now(), now(), now(),
        '4bf92f3577b34da6a3ce929d0e0e4736'
    FROM (SELECT '01' || lpad((:payment::int8)::text, 24, '0') AS p, sha512(int8send(:at::int8)) AS x) AS event;
UPDATE payfact.payment_order SET version = version + 1, event_sequence = event_sequence + 1, updated_at = now()
    WHERE payment_id = '01' || lpad((:payment::int8)::text, 24, '0') AND version = :version::int8 + :pass::int8;
INSERT INTO payfact.payment_state_history (decided_at, payment_id, aggregate, aggregate_id, from_status, to_status, verdict, event_type, event_id,
        source, evidence_level, reason_code, provider_reference, amount_minor, currency, trace_id, version_before)
    SELECT now(), p, 'ATTEMPT', p || 'A01', 'CREATED', 'PROCESSING', 'APPLY', 'PRC', p, 'WEBHOOK', 3, 'APPLIED', 'pi_3P' || p, 2599, 'EUR',
        '4bf92f3577b34da6a3ce929d0e0e4736', 2
    FROM (SELECT '01' || lpad((:payment::int8)::text, 24, '0') AS p) AS event;
INSERT INTO payfact.payment_outbox (shard, topic, key, payload, headers, created_at)
    SELECT (:payment::int8 % 12)::int2, 'events', p, substr(x || x || x || x || x, 1, 300),
        ARRAY['ce_specversion', '1.0', 'ce_type', 'payfact.PaymentSucceeded', 'ce_id', p, 'ce_source', 'payfact'], now()
    FROM (SELECT '01' || lpad((:payment::int8)::text, 24, '0') AS p, sha512(int8send(:at::int8)) AS x) AS event;
COMMIT;
\endpipeline
