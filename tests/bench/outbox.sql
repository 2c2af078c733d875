-- SPDX-License-Identifier: Apache-2.0
-- Rows as the processor leaves them in the outbox: the payload begins with the row's number, which bench-drained reads back.
CREATE PROCEDURE payfact.bench_fill(total bigint, a_transaction bigint, keys bigint) LANGUAGE plpgsql AS $$
BEGIN
    FOR begin_at IN 1 .. total BY a_transaction LOOP
        INSERT INTO payfact.payment_outbox (shard, topic, key, payload, headers, created_at)
            SELECT (s % keys % 12)::int2, 'events', '01' || lpad((s % keys)::text, 24, '0'), int8send(s) || h || h || h || h || substr(h, 1, 36),
                ARRAY['ce_specversion', '1.0', 'ce_type', 'payfact.PaymentSucceeded', 'ce_source', 'payfact/acme', 'ce_id',
                    'PaymentSucceeded/01' || lpad((s % keys)::text, 24, '0') || '/3d0308b429ea7cf8', 'ce_subject',
                    '01' || lpad((s % keys)::text, 24, '0'), 'ce_time', '2026-01-01T00:00:00.000000Z', 'ce_sequence', s::text,
                    'content-type', 'application/avro'], now()
            FROM generate_series(begin_at, least(begin_at + a_transaction - 1, total)) AS s, LATERAL (SELECT sha512(int8send(s)) AS h) AS x
            ORDER BY s;
        COMMIT;
    END LOOP;
END $$;
