-- SPDX-License-Identifier: Apache-2.0
-- One payment by hand, as the processor and the others leave it: the PSP timed out after charging, the callback came five times, an operator
-- still has a case. Secrets stand in every sealed column, to be found nowhere in what explain prints.
SET search_path = payfact;

INSERT INTO payment_order (payment_id, merchant_id, merchant_order_no, amount_minor, currency, capture_mode, status, reason_code, failover_until,
    expires_at, version, event_sequence, attempt_count, created_by, created_at, updated_at)
VALUES ('01JD0000000000000000000001', 'acme', 'ORDER-1', 2599, 'EUR', 'AUTOMATIC', 'SUCCEEDED', 'SUC', '2026-11-30 12:15:00+00',
    '2026-12-01 12:00:00+00', 4, 3, 1, 'shop', '2026-11-30 12:00:00+00', '2026-11-30 12:00:09.5+00');

INSERT INTO payment_route (payment_id, route_no, psp, psp_account, method, failover_on_not_found, params, params_key_id, params_bound_to)
VALUES ('01JD0000000000000000000001', 0, 'stripe', 'stripe-a', 'card', true, 'SEALED-SECRET', 'k1', 'params'),
       ('01JD0000000000000000000001', 1, 'stripe', 'stripe-b', 'card', false, NULL, NULL, NULL);
INSERT INTO route_pause VALUES ('stripe', 'stripe-b', '', 'operator-1', 'SICK', '2026-11-30 11:00:00+00');

INSERT INTO payment_attempt (attempt_id, payment_id, attempt_no, route_no, psp, psp_account, method, merchant_request_no, amount_minor, currency,
    status, live, result_certainty, last_accepted_event_id, version, query_count, submitted_at, known_at, created_at, updated_at)
VALUES ('01JD0000000000000000000001A01', '01JD0000000000000000000001', 1, 0, 'stripe', 'stripe-a', 'card', '01JD0000000000000000000001A01', 2599,
    'EUR', 'SUCCEEDED', true, 4, 'pi_123||ATTEMPT_SUCCEEDED|succeeded', 3, 2, '2026-11-30 12:00:01+00', '2026-11-30 12:00:09+00',
    '2026-11-30 12:00:00+00', '2026-11-30 12:00:09+00');
INSERT INTO payment_amount (attempt_id, payment_id, currency, authorized_minor, captured_minor, updated_at)
VALUES ('01JD0000000000000000000001A01', '01JD0000000000000000000001', 'EUR', 2599, 2599, now());
INSERT INTO attempt_reference (psp, psp_account, kind, reference, attempt_id, created_at)
VALUES ('stripe', 'stripe-a', 'INTENT', 'pi_123', '01JD0000000000000000000001A01', '2026-11-30 12:00:09+00'),
       ('stripe', 'stripe-a', 'CHARGE', 'ch_123', '01JD0000000000000000000001A01', '2026-11-30 12:00:09+00');

INSERT INTO psp_request (job_id, payment_id, action_id, kind, digest, not_after, sending_at, sent_by, sends, last_send_at, request, request_key_id,
    outcome, outcome_key_id, finished_at)
VALUES ('01JD0000000000000000000001A01.SUBMIT', '01JD0000000000000000000001', '01JD0000000000000000000001A01', 'SUBMIT',
    decode(repeat('ab', 32), 'hex'), '2026-11-30 12:01:00+00', '2026-11-30 12:00:01+00', 'psp-1', 1, '2026-11-30 12:00:01+00', 'SEALED-SECRET', 'k1',
    'SEALED-SECRET', 'k1', '2026-11-30 12:00:03+00');

INSERT INTO payment_state_history (decided_at, payment_id, aggregate, aggregate_id, from_status, to_status, verdict, event_type, event_id,
    published_event_id, published_sequence, source, evidence_level, reason_code, operator, provider_reference, amount_minor, currency, http_status,
    psp_request_id, version_before)
VALUES
    (date_trunc('month', now()) + interval '1 s', '01JD0000000000000000000001', 'ORDER', '01JD0000000000000000000001', NULL, 'PROCESSING', 'APPLY',
     'CREATE_PAYMENT', 'shop/cmd-1', 'PaymentCreated/01JD0000000000000000000001/00', 1, 'MERCHANT', 1, 'CREATED', 'shop', NULL, 2599, 'EUR', NULL, NULL, 0),
    (date_trunc('month', now()) + interval '2 s', '01JD0000000000000000000001', 'ATTEMPT', '01JD0000000000000000000001A01', 'SUBMITTED', 'UNKNOWN',
     'APPLY', 'UNK', 'in-unk', NULL, NULL, 'LOCAL', 1, 'TIMEOUT', NULL, NULL, NULL, NULL, 504, 'req_9', 1),
    (date_trunc('month', now()) + interval '3 s', '01JD0000000000000000000001', 'ATTEMPT', '01JD0000000000000000000001A01', 'UNKNOWN', 'SUCCEEDED',
     'APPLY', 'SUC', 'in-suc', 'PaymentSucceeded/01JD0000000000000000000001/11', 2, 'QUERY', 4, 'SUC', NULL, 'pi_123', 2599, 'EUR', NULL, NULL, 2),
    (date_trunc('month', now()) + interval '4 s', '01JD0000000000000000000001', 'ATTEMPT', '01JD0000000000000000000001A01', 'SUCCEEDED', 'SUCCEEDED',
     'IGNORE', 'PRC', 'in-prc', NULL, NULL, 'WEBHOOK', 3, 'STALE', NULL, 'pi_123', NULL, NULL, NULL, NULL, 3),
    (date_trunc('month', now()) + interval '5 s', '01JD0000000000000000000001', 'ATTEMPT', '01JD0000000000000000000001A01', 'SUCCEEDED', 'SUCCEEDED',
     'REJECT', 'SUC', 'in-wrong', 'ManualReviewRequired/01JD0000000000000000000001/22', 3, 'WEBHOOK', 3, 'AMOUNT_MISMATCH', NULL, 'pi_123', 9999, 'EUR',
     NULL, NULL, 3);

INSERT INTO channel_event (received_month, psp, psp_account, transport_key, input_id, kind, source, payment_id, business_key, body, key_id, sha256,
    normalized, verification, status, delivery_count, received_at, first_seen_at, last_seen_at)
VALUES
    (date_trunc('month', now())::date, 'stripe', 'stripe-a', 'evt_1', 'in-prc', 'PSP_EVENT', 'WEBHOOK', '01JD0000000000000000000001', 'b1', 'SEALED-SECRET',
     'k1', decode(repeat('cd', 32), 'hex'), 'SEALED-SECRET', 'whsec-a', 'DECIDED', 5, '2026-11-30 12:00:10+00', '2026-11-30 12:00:10+00',
     '2026-11-30 12:00:12+00'),
    (date_trunc('month', now())::date, 'stripe', 'stripe-a', 'evt_2', 'in-wrong', 'PSP_EVENT', 'WEBHOOK', '01JD0000000000000000000001', 'b2', NULL, NULL,
     decode(repeat('cd', 32), 'hex'), 'SEALED-SECRET', 'whsec-a', 'ORPHAN', 1, '2026-11-30 12:00:11+00', '2026-11-30 12:00:11+00',
     '2026-11-30 12:00:11+00');

INSERT INTO command (caller, command_id, sha256, type, payment_id, merchant_id, key_id, status, reason_code, answer, received_at, decided_at)
VALUES ('shop', 'cmd-1', decode(repeat('ef', 32), 'hex'), 'CREATE_PAYMENT', '01JD0000000000000000000001', 'acme', 'shop-key', 'ACCEPTED', NULL,
        'SEALED-SECRET', '2026-11-30 12:00:00+00', '2026-11-30 12:00:00+00'),
       ('shop', 'cmd-2', decode(repeat('ef', 32), 'hex'), 'CREATE_PAYMENT', '01JD0000000000000000000002', 'acme', 'shop-key', 'REJECTED',
        'DUPLICATE_ORDER_NO', 'SEALED-SECRET', '2026-11-30 12:00:00+00', '2026-11-30 12:00:00+00');

INSERT INTO manual_case (case_id, payment_id, kind, aggregate_id, case_no, proposed_refund_minor, status, evidence, opened_by, opened_at)
VALUES ('01JD0000000000000000000001.AMOUNT_MISMATCH.1', '01JD0000000000000000000001', 'AMOUNT_MISMATCH', '01JD0000000000000000000001A01', 1, 9999, 'OPEN',
        '[{"x": "SEALED-SECRET"}]', 'in-wrong', '2026-11-30 12:00:11+00');

INSERT INTO payment_outbox (shard, topic, key, payload, headers, created_at, attempts, available_at)
VALUES (3, 'events', '01JD0000000000000000000001', 'SEALED-SECRET', '{}', '2026-11-30 12:00:11+00', 1, '2026-11-30 12:01:00+00'),
       (3, 'events', '01JD0000000000000000000003', 'SEALED-SECRET', '{}', '2026-11-30 12:00:11+00', 0, NULL);

INSERT INTO payment_deadline (due_at, kind, aggregate_id, payment_id, tries)
VALUES ('2026-11-30 12:05:00+00', 'QUERY', '01JD0000000000000000000001A01', '01JD0000000000000000000001', 2),
       ('2199-12-01 12:00:00+00', 'ORDER_EXPIRY', '01JD0000000000000000000001', '01JD0000000000000000000001', 0),
       ('2199-12-01 13:00:00+00', 'ORPHAN', 'stripe/stripe-a/evt_2', '01JD0000000000000000000001', 0),
       ('2199-12-01 12:00:00+00', 'QUERY', '01JD0000000000000000000003A01', '01JD0000000000000000000003', 0);
