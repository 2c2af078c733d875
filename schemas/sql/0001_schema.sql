-- SPDX-License-Identifier: Apache-2.0
-- payfact schema, PostgreSQL 15 or later: tables, constraints, append-only triggers, monthly partitions. Applied by "payfactctl migrate" as
-- one transaction into an empty database, or by hand: psql -v ON_ERROR_STOP=1 -1 -f 0001_schema.sql -f 0002_roles.sql
--
-- Times are timestamptz by the database's clock unless a comment says whose. Money is bigint minor units. Text that is a key has COLLATE "C".
-- Sealed columns hold nonce (12 bytes) || ciphertext || tag (16 bytes) of AES-256-GCM; the key id stands beside them.
--
-- Ids, all derived, so that deciding again makes the same ones:
--   payment_id  26 characters, ULID in upper-case Crockford base32, chosen by the sender of CREATE_PAYMENT
--   attempt_id  payment_id || 'A' || 2 digits = 29 characters = the request number sent to the PSP; captures 'C', refunds 'R', disputes 'D'
--   job_id      action id || '.' || kind [|| '.' || n]
--   event_id    type || '/' || aggregate id || '/' || hash of the cause

CREATE SCHEMA payfact;
SET search_path = payfact;

-- ---------------------------------------------------------------------------------------------------------------- value types
-- A domain with a regular expression costs about 1 us a row: used on the payment's own tables, not on the append-only ones.
CREATE DOMAIN payment_id_t AS text COLLATE "C" CHECK (VALUE ~ '^[0-7][0-9A-HJKMNP-TV-Z]{25}$');
CREATE DOMAIN action_id_t  AS text COLLATE "C" CHECK (VALUE ~ '^[0-7][0-9A-HJKMNP-TV-Z]{25}[ACRD][0-9]{2}$');
CREATE DOMAIN currency_t   AS text COLLATE "C" CHECK (VALUE ~ '^[A-Z]{3}$');
CREATE DOMAIN sha256_t     AS bytea            CHECK (octet_length(VALUE) = 32);
CREATE DOMAIN evidence_t   AS smallint         CHECK (VALUE BETWEEN 1 AND 6); -- LOCAL SYNC_RESPONSE WEBHOOK QUERY STATEMENT CONTROLLED

CREATE DOMAIN order_status_t AS text COLLATE "C" CHECK (VALUE IN
    ('CREATED', 'PROCESSING', 'REQUIRES_ACTION', 'AUTHORIZED', 'SUCCEEDED', 'FAILED', 'CANCELED', 'EXPIRED'));
CREATE DOMAIN attempt_status_t AS text COLLATE "C" CHECK (VALUE IN
    ('CREATED', 'SUBMITTED', 'PROCESSING', 'REQUIRES_ACTION', 'AUTHORIZED', 'UNKNOWN', 'SUCCEEDED', 'FAILED', 'CANCELED'));
CREATE DOMAIN action_status_t AS text COLLATE "C" CHECK (VALUE IN
    ('CREATED', 'PROCESSING', 'UNKNOWN', 'SUCCEEDED', 'FAILED', 'CANCELED', 'REVERSED'));
CREATE DOMAIN verdict_t AS text COLLATE "C" CHECK (VALUE IN ('APPLY', 'IGNORE', 'REJECT', 'NEEDS_RECONCILIATION'));
CREATE DOMAIN source_t AS text COLLATE "C" CHECK (VALUE IN
    ('SYNC', 'WEBHOOK', 'QUERY', 'STATEMENT', 'MERCHANT', 'OPERATOR', 'LOCAL'));
CREATE DOMAIN failure_class_t AS text COLLATE "C" CHECK (VALUE IN
    ('DECLINED', 'INSUFFICIENT_FUNDS', 'AUTHENTICATION_FAILED', 'FRAUD_SUSPECTED', 'INVALID_REQUEST', 'EXPIRED',
     'NOT_SENT', 'PSP_NOT_FOUND', 'PSP_ERROR', 'CONFIGURATION', 'OTHER'));

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '"%" is append only', TG_TABLE_NAME USING ERRCODE = '42501';
END $$;
REVOKE ALL ON FUNCTION refuse_change() FROM PUBLIC;

-- ------------------------------------------------------------------------------------------------------------------ migrations
CREATE TABLE schema_migration (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   sha256_t NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    applied_by text NOT NULL DEFAULT session_user
);

-- ---------------------------------------------------------------------------------------------------------------------- orders
-- version is the lock of the whole payment: every decision that writes a history row raises it. No index covers a column that an ordinary
-- update changes, so updates are HOT. fillfactor 50, not 75: a batch often updates every row of a page in one transaction, and then each row
-- needs room for a second version (measured: 44 to 61 % HOT at 75, 95 to 100 % at 50).
CREATE TABLE payment_order (
    payment_id         payment_id_t PRIMARY KEY,
    merchant_id        text COLLATE "C" NOT NULL,
    merchant_order_no  text COLLATE "C" NOT NULL CHECK (octet_length(merchant_order_no) BETWEEN 1 AND 64),
    amount_minor       bigint NOT NULL CHECK (amount_minor > 0),
    currency           currency_t NOT NULL,
    capture_mode       text COLLATE "C" NOT NULL CHECK (capture_mode IN ('AUTOMATIC', 'MANUAL')),
    status             order_status_t NOT NULL,
    reason_code        text COLLATE "C",                    -- why it is in this status: AWAITING_METHOD, the last decline ...
    intent             text COLLATE "C" NOT NULL DEFAULT 'NONE' CHECK (intent IN ('NONE', 'CANCEL', 'CHANGE_METHOD')),
    intent_command_id  text COLLATE "C",                    -- caller/command_id
    intent_route_no    smallint NOT NULL DEFAULT -1 CHECK (intent_route_no BETWEEN -1 AND 15), -- CHANGE_METHOD: the route chosen; else -1
    failover_until     timestamptz NOT NULL,                -- set to the decision's time by a CONTROLLED decision: no failover by itself after it
    expires_at         timestamptz NOT NULL,
    retry_until_expiry boolean NOT NULL DEFAULT true,
    expiry_asked       boolean NOT NULL DEFAULT false,      -- the end came beside a live attempt: asked again when that attempt ends
    version            bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    event_sequence     bigint NOT NULL DEFAULT 0 CHECK (event_sequence >= 0), -- last sequence given to a domain event; gapless
    attempt_count      smallint NOT NULL DEFAULT 0 CHECK (attempt_count BETWEEN 0 AND 99),
    capture_count      smallint NOT NULL DEFAULT 0 CHECK (capture_count BETWEEN 0 AND 99),
    refund_count       smallint NOT NULL DEFAULT 0 CHECK (refund_count BETWEEN 0 AND 99),
    dispute_count      smallint NOT NULL DEFAULT 0 CHECK (dispute_count BETWEEN 0 AND 99), -- the number in a dispute's id
    created_by         text COLLATE "C" NOT NULL,           -- caller of CREATE_PAYMENT
    traceparent        text COLLATE "C",
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    description        text CHECK (octet_length(description) <= 127), -- shown to the customer; no personal data
    UNIQUE (merchant_id, merchant_order_no),
    CHECK ((intent = 'NONE') = (intent_command_id IS NULL)),
    CHECK ((intent = 'CHANGE_METHOD') = (intent_route_no >= 0))
) WITH (fillfactor = 50);

-- The payment's routes in order of preference; START_ATTEMPT and CHANGE_METHOD append theirs. Insert only, in a table of its own so that the
-- order's versions do not copy the sealed parameters (docs/adr/0006-routes-in-their-own-table.md).
CREATE TABLE payment_route (
    payment_id            payment_id_t NOT NULL REFERENCES payment_order,
    route_no              smallint NOT NULL CHECK (route_no BETWEEN 0 AND 15),
    psp                   text COLLATE "C" NOT NULL,
    psp_account           text COLLATE "C" NOT NULL,
    method                text COLLATE "C" NOT NULL,
    failover_on_not_found boolean NOT NULL,
    params                bytea,                            -- sealed SubmitParams; NULL: the route has none
    params_key_id         text COLLATE "C",
    params_bound_to       text COLLATE "C",                 -- additional data of the seal, as the relay made it
    PRIMARY KEY (payment_id, route_no),
    CHECK ((params IS NULL) = (params_key_id IS NULL) AND (params IS NULL) = (params_bound_to IS NULL))
);
ALTER TABLE payment_route ALTER COLUMN params SET STORAGE EXTERNAL; -- ciphertext does not compress

-- A later command may name a route that the payment has already, with other parameters (another card): the latest ones count.
CREATE TABLE payment_route_params (
    payment_id      payment_id_t NOT NULL,
    route_no        smallint NOT NULL,
    created_at      timestamptz NOT NULL,
    params          bytea NOT NULL,
    params_key_id   text COLLATE "C" NOT NULL,
    params_bound_to text COLLATE "C" NOT NULL,
    PRIMARY KEY (payment_id, route_no, created_at),
    FOREIGN KEY (payment_id, route_no) REFERENCES payment_route
);
ALTER TABLE payment_route_params ALTER COLUMN params SET STORAGE EXTERNAL;

-- -------------------------------------------------------------------------------------------------------------------- attempts
CREATE TABLE payment_attempt (
    attempt_id               action_id_t PRIMARY KEY,
    payment_id               payment_id_t NOT NULL REFERENCES payment_order,
    attempt_no               smallint NOT NULL CHECK (attempt_no BETWEEN 1 AND 99),
    route_no                 smallint NOT NULL CHECK (route_no BETWEEN 0 AND 15),       -- of payment_route
    psp                      text COLLATE "C" NOT NULL,
    psp_account              text COLLATE "C" NOT NULL,
    method                   text COLLATE "C" NOT NULL,
    merchant_request_no      text COLLATE "C" NOT NULL UNIQUE CHECK (merchant_request_no = attempt_id),
    amount_minor             bigint NOT NULL CHECK (amount_minor > 0),
    currency                 currency_t NOT NULL,
    status                   attempt_status_t NOT NULL,
    -- Blocks another attempt. A column, not a predicate over status: "WHERE status IN (...)" makes every status update non-HOT (measured).
    -- It ends with FAILED or CANCELED, or early by OVERRIDE_BLOCK. A SUCCEEDED attempt may keep it (the CHECKs take both): then the database
    -- itself refuses an attempt after a success, and the success stays HOT (measured: 100 % of updates against 67 % when success clears it).
    live                     boolean NOT NULL DEFAULT true,
    override_request_id      text COLLATE "C",              -- the approved OVERRIDE_BLOCK that cleared live
    result_certainty         evidence_t NOT NULL,
    last_accepted_event_id   text COLLATE "C",              -- business key of the last applied event
    version                  bigint NOT NULL DEFAULT 1 CHECK (version > 0),             -- raised only when this row changes
    query_count              integer NOT NULL DEFAULT 0,
    not_found_count          integer NOT NULL DEFAULT 0,    -- in a row
    not_found_from           timestamptz,                   -- when the first of that row was asked (ingest's clock); a later send starts it again
    known_at                 timestamptz,                   -- when a fact or a reference first proved that the PSP has it
    unknown_since            timestamptz,
    submitted_at             timestamptz,
    action_no                smallint NOT NULL DEFAULT 0,   -- actions handed to the customer so far; 0 = none ever
    confirm_no               smallint NOT NULL DEFAULT 0,   -- CONFIRM jobs made so far
    cancel_no                smallint NOT NULL DEFAULT 0,   -- CANCEL jobs made so far
    action_expires_at        timestamptz,
    psp_expires_at           timestamptz,                   -- the expiry that our create request gave to the PSP
    authorization_expires_at timestamptz,
    cancel_cause             text COLLATE "C" CHECK (cancel_cause IN ('MERCHANT', 'CHANGE_METHOD', 'DEADLINE', 'DECLINED', 'OTHER_SUCCEEDED')),
                                                            -- why the CANCEL job was sent; the order's next state depends on it
    failure_class            failure_class_t,
    failure_code             text COLLATE "C",
    settled_at               timestamptz,                   -- an AUTOMATIC capture has no capture_order row to carry it
    created_at               timestamptz NOT NULL,
    updated_at               timestamptz NOT NULL,
    CHECK (attempt_id = payment_id || 'A' || lpad(attempt_no::text, 2, '0')),
    CHECK (NOT live OR status NOT IN ('FAILED', 'CANCELED')),
    CHECK (live OR status IN ('FAILED', 'CANCELED', 'SUCCEEDED') OR override_request_id IS NOT NULL),
    CHECK ((status = 'UNKNOWN') = (unknown_since IS NOT NULL))
) WITH (fillfactor = 40);
CREATE UNIQUE INDEX payment_attempt_one_live ON payment_attempt (payment_id) WHERE live;
CREATE INDEX payment_attempt_payment ON payment_attempt (payment_id);

-- What the customer's browser brought back (CONTINUE_ATTEMPT), sealed: a CONFIRM that was not sent is made again with it.
CREATE TABLE attempt_redirect (
    attempt_id  action_id_t NOT NULL REFERENCES payment_attempt,
    action_no   smallint NOT NULL,                          -- the action it answers: the latest one wins
    data        bytea NOT NULL,
    key_id      text COLLATE "C" NOT NULL,
    bound_to    text COLLATE "C" NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (attempt_id, created_at)
);

-- Insert only: every name a PSP has for anything of an attempt. The reference stands
-- first so that a person who holds only a reference finds its payment.
CREATE TABLE attempt_reference (
    psp         text COLLATE "C" NOT NULL,
    psp_account text COLLATE "C" NOT NULL,
    kind        text COLLATE "C" NOT NULL CHECK (kind IN
        ('ORDER', 'INTENT', 'AUTHORIZATION', 'CAPTURE', 'CHARGE', 'REFUND', 'MODIFICATION', 'DISPUTE', 'OTHER')),
    reference   text COLLATE "C" NOT NULL CHECK (octet_length(reference) BETWEEN 1 AND 255),
    attempt_id  action_id_t NOT NULL REFERENCES payment_attempt,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (reference, kind, psp_account, psp)
);
CREATE INDEX attempt_reference_attempt ON attempt_reference (attempt_id);

CREATE TRIGGER attempt_reference_kept BEFORE UPDATE OR DELETE ON attempt_reference FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER payment_route_kept BEFORE UPDATE OR DELETE ON payment_route FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- One row per attempt: a second charge must be recordable, and refundable at the PSP that holds it.
CREATE TABLE payment_amount (
    attempt_id             action_id_t PRIMARY KEY REFERENCES payment_attempt,
    payment_id             payment_id_t NOT NULL,
    currency               currency_t NOT NULL,
    authorized_minor       bigint NOT NULL DEFAULT 0 CHECK (authorized_minor >= 0),
    capture_reserved_minor bigint NOT NULL DEFAULT 0 CHECK (capture_reserved_minor >= 0),
    captured_minor         bigint NOT NULL DEFAULT 0 CHECK (captured_minor >= 0),
    refund_reserved_minor  bigint NOT NULL DEFAULT 0 CHECK (refund_reserved_minor >= 0),
    refunded_minor         bigint NOT NULL DEFAULT 0 CHECK (refunded_minor >= 0),
    withdrawn_minor        bigint NOT NULL DEFAULT 0 CHECK (withdrawn_minor >= 0),      -- disputes, and captures taken back
    updated_at             timestamptz NOT NULL,
    CONSTRAINT payment_amount_capture_fits CHECK (captured_minor + capture_reserved_minor <= authorized_minor),
    CONSTRAINT payment_amount_refund_fits  CHECK (refunded_minor + refund_reserved_minor <= captured_minor)
) WITH (fillfactor = 50);
CREATE INDEX payment_amount_payment ON payment_amount (payment_id);

-- A payment's totals are sums, never stored.
CREATE VIEW payment_total AS
SELECT payment_id, currency,
       sum(authorized_minor)::bigint AS authorized_minor, sum(capture_reserved_minor)::bigint AS capture_reserved_minor,
       sum(captured_minor)::bigint AS captured_minor, sum(refund_reserved_minor)::bigint AS refund_reserved_minor,
       sum(refunded_minor)::bigint AS refunded_minor, sum(withdrawn_minor)::bigint AS withdrawn_minor
FROM payment_amount GROUP BY payment_id, currency;

-- --------------------------------------------------------------------------------------------------------------- money actions
CREATE TABLE capture_order (
    capture_id         action_id_t PRIMARY KEY CHECK (substr(capture_id, 27, 1) = 'C'),
    attempt_id         action_id_t NOT NULL REFERENCES payment_attempt,
    payment_id         payment_id_t NOT NULL,
    merchant_id        text COLLATE "C" NOT NULL,
    idempotency_key    text COLLATE "C" NOT NULL CHECK (octet_length(idempotency_key) <= 200), -- the merchant's, else caller/command_id;
                                                            -- origin PSP: psp/account/reference
    amount_minor       bigint NOT NULL CHECK (amount_minor > 0),
    currency           currency_t NOT NULL,
    is_final           boolean NOT NULL DEFAULT true,       -- releases what is left of the authorization
    status             action_status_t NOT NULL,
    result_certainty   evidence_t NOT NULL,
    provider_reference text COLLATE "C",
    origin             text COLLATE "C" NOT NULL CHECK (origin IN ('MERCHANT', 'POLICY', 'PSP')),
    last_accepted_event_id text COLLATE "C",
    version            bigint NOT NULL DEFAULT 1 CHECK (version > 0),   -- the "expected version" of an operator's command
    query_count        integer NOT NULL DEFAULT 0,
    not_found_count    integer NOT NULL DEFAULT 0,
    unknown_since      timestamptz,
    give_up_at         timestamptz NOT NULL,                -- the action's end: not sent by then = withdrawn
    failure_class      failure_class_t,
    failure_code       text COLLATE "C",
    settled_at         timestamptz,                         -- NULL = UNSETTLED
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    UNIQUE (merchant_id, idempotency_key),
    CHECK ((status = 'UNKNOWN') = (unknown_since IS NOT NULL))
) WITH (fillfactor = 50);
CREATE INDEX capture_order_payment ON capture_order (payment_id);

CREATE TABLE refund_order (
    refund_id          action_id_t PRIMARY KEY CHECK (substr(refund_id, 27, 1) = 'R'),
    attempt_id         action_id_t NOT NULL REFERENCES payment_attempt,
    payment_id         payment_id_t NOT NULL,
    merchant_id        text COLLATE "C" NOT NULL,
    idempotency_key    text COLLATE "C" NOT NULL CHECK (octet_length(idempotency_key) <= 200), -- as above; out of a sum: attempt_id/sum
    amount_minor       bigint NOT NULL CHECK (amount_minor > 0),
    currency           currency_t NOT NULL,
    status             action_status_t NOT NULL,
    result_certainty   evidence_t NOT NULL,
    provider_reference text COLLATE "C",
    origin             text COLLATE "C" NOT NULL CHECK (origin IN ('MERCHANT', 'OPERATOR', 'PSP')),
    reason_code        text COLLATE "C",
    last_accepted_event_id text COLLATE "C",
    version            bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    query_count        integer NOT NULL DEFAULT 0,
    not_found_count    integer NOT NULL DEFAULT 0,
    unknown_since      timestamptz,
    give_up_at         timestamptz NOT NULL,
    failure_class      failure_class_t,
    failure_code       text COLLATE "C",
    settled_at         timestamptz,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    UNIQUE (merchant_id, idempotency_key),
    CHECK ((status = 'UNKNOWN') = (unknown_since IS NOT NULL))
) WITH (fillfactor = 50);
CREATE INDEX refund_order_payment ON refund_order (payment_id);

-- What was refunded without approval, so that a threshold per merchant and day can hold. The sum is over payments, so no
-- payment's version protects it; the row is raised by a conditional update in the same transaction.
CREATE TABLE refund_day (
    merchant_id  text COLLATE "C" NOT NULL,
    day          date NOT NULL,                             -- UTC
    currency     currency_t NOT NULL,
    amount_minor bigint NOT NULL CHECK (amount_minor >= 0),
    PRIMARY KEY (merchant_id, day, currency)
) WITH (fillfactor = 50);

CREATE TABLE dispute (
    psp                text COLLATE "C" NOT NULL,
    psp_account        text COLLATE "C" NOT NULL,
    provider_reference text COLLATE "C" NOT NULL,
    dispute_id         action_id_t NOT NULL UNIQUE CHECK (substr(dispute_id, 27, 1) = 'D'),
    attempt_id         action_id_t NOT NULL REFERENCES payment_attempt,
    payment_id         payment_id_t NOT NULL,
    amount_minor       bigint NOT NULL CHECK (amount_minor >= 0),
    currency           currency_t NOT NULL,
    status             text COLLATE "C" NOT NULL CHECK (status IN ('OPENED', 'EVIDENCE_DUE', 'UNDER_REVIEW', 'WON', 'LOST', 'CLOSED')),
    is_inquiry         boolean NOT NULL,                    -- moves no money
    withdrawn_minor    bigint NOT NULL DEFAULT 0 CHECK (withdrawn_minor >= 0), -- this dispute's part of payment_amount.withdrawn_minor
    reason_code        text COLLATE "C",
    evidence_due_at    timestamptz,
    result_certainty   evidence_t NOT NULL,
    last_accepted_event_id text COLLATE "C",
    version            bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    PRIMARY KEY (psp, psp_account, provider_reference),
    CHECK (NOT is_inquiry OR withdrawn_minor = 0)
);
CREATE INDEX dispute_payment ON dispute (payment_id);

-- -------------------------------------------------------------------------------------------------------------- inbox, evidence
-- Transport idempotency, for ever. PostgreSQL cannot hold a unique key over monthly partitions unless the month is part of it, so the key has a
-- table of its own. No foreign key to channel_event: a month of that can be detached. For what has no PSP (deadlines, poison) psp and
-- psp_account are ''. The key is a digest because the table is kept for ever: 114 bytes a row against 180 to 230 (measured).
CREATE FUNCTION inbox_digest(p_psp text, p_psp_account text, p_transport_key text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
    $$ SELECT substr(sha256(convert_to(p_psp || '/' || p_psp_account || '/' || p_transport_key, 'UTF8')), 1, 16) $$;

CREATE TABLE inbox_key (
    key              bytea PRIMARY KEY CHECK (octet_length(key) = 16),  -- inbox_digest(psp, psp_account, transport_key)
    received_month   date NOT NULL,
    channel_event_id bigint NOT NULL
) PARTITION BY HASH (key);
DO $$
BEGIN
    FOR i IN 0 .. 15 LOOP
        EXECUTE format('CREATE TABLE inbox_key_%s PARTITION OF inbox_key FOR VALUES WITH (MODULUS 16, REMAINDER %s)', lpad(i::text, 2, '0'), i);
    END LOOP;
END $$;

CREATE SEQUENCE channel_event_id_seq CACHE 50;
CREATE TABLE channel_event (
    id              bigint NOT NULL DEFAULT nextval('channel_event_id_seq'),
    received_month  date NOT NULL,                          -- month of first_seen_at in UTC, by the database's clock: a gateway's clock cannot
                                                            -- name a month that has no partition
    psp             text COLLATE "C" NOT NULL,
    psp_account     text COLLATE "C" NOT NULL,
    transport_key   text COLLATE "C" NOT NULL CHECK (octet_length(transport_key) BETWEEN 1 AND 200),
    input_id        text COLLATE "C" NOT NULL,
    kind            text COLLATE "C" NOT NULL CHECK (kind IN ('PSP_EVENT', 'DEADLINE', 'REFUSED_NOTIFICATION', 'POISON')),
    source          source_t NOT NULL,
    payment_id      text COLLATE "C",                       -- NULL until it is resolved
    business_key    text COLLATE "C",
    body            bytea,                                  -- raw bytes, sealed: additional data psp/psp_account/transport_key
    key_id          text COLLATE "C",
    sha256          bytea CHECK (octet_length(sha256) = 32),
    normalized      bytea,                                  -- the PaymentInput without its evidence and without the customer's action; what a replay
                                                            -- decides. POISON: NULL, the bytes are in body
    verification    text COLLATE "C" NOT NULL,              -- id of the key that verified it, 'local', or why it was refused
    status          text COLLATE "C" NOT NULL CHECK (status IN ('DECIDED', 'ORPHAN', 'DEAD')),
    delivery_count  integer NOT NULL DEFAULT 1 CHECK (delivery_count > 0),
    occurred_at     timestamptz,                            -- the PSP's word; decides nothing
    received_at     timestamptz NOT NULL,                   -- ingest's or the gateway's clock; decides nothing
    first_seen_at   timestamptz NOT NULL,
    last_seen_at    timestamptz NOT NULL,
    trace_id        text COLLATE "C",
    PRIMARY KEY (received_month, id),
    CHECK ((body IS NULL) = (key_id IS NULL)),
    CHECK ((kind IN ('PSP_EVENT', 'DEADLINE')) = (normalized IS NOT NULL))
) PARTITION BY RANGE (received_month);
ALTER SEQUENCE channel_event_id_seq OWNED BY channel_event.id;
ALTER TABLE channel_event ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX channel_event_payment ON channel_event (payment_id) WHERE payment_id IS NOT NULL;
CREATE TRIGGER channel_event_kept BEFORE DELETE ON channel_event FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER inbox_key_kept BEFORE UPDATE OR DELETE ON inbox_key FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Command idempotency, for ever. payment_id is '' for a command about no payment (PAUSE_ROUTE).
CREATE TABLE command (
    caller      text COLLATE "C" NOT NULL,
    command_id  text COLLATE "C" NOT NULL CHECK (octet_length(command_id) BETWEEN 1 AND 64),
    sha256      sha256_t NOT NULL,                          -- of the signed value: "the same content"
    type        text COLLATE "C" NOT NULL,
    payment_id  text COLLATE "C" NOT NULL,
    merchant_id text COLLATE "C" NOT NULL,
    key_id      text COLLATE "C" NOT NULL,
    status      text COLLATE "C" NOT NULL CHECK (status IN ('ACCEPTED', 'AWAITING_APPROVAL', 'REJECTED')),
    reason_code text COLLATE "C",
    answer      bytea NOT NULL,                             -- the PaymentEvent as published: a repeat publishes the same one
    received_at timestamptz NOT NULL,
    decided_at  timestamptz NOT NULL,
    PRIMARY KEY (caller, command_id)
);
CREATE INDEX command_payment ON command (payment_id);

-- --------------------------------------------------------------------------------------------------------------------- history
CREATE TABLE payment_state_history (
    id                 bigint GENERATED ALWAYS AS IDENTITY (CACHE 50),
    decided_at         timestamptz NOT NULL,
    payment_id         text COLLATE "C" NOT NULL,           -- '' for an event that is no payment of ours (FOREIGN)
    aggregate          text COLLATE "C" NOT NULL CHECK (aggregate IN ('ORDER', 'ATTEMPT', 'CAPTURE', 'REFUND', 'DISPUTE', 'APPROVAL', 'CASE', 'COMMAND')),
    aggregate_id       text COLLATE "C" NOT NULL,
    from_status        text COLLATE "C",
    to_status          text COLLATE "C",
    verdict            verdict_t NOT NULL,
    event_type         text COLLATE "C" NOT NULL,           -- of the input: SUC, AEX, CREATE_PAYMENT ...
    event_id           text COLLATE "C" NOT NULL,           -- of the input: input_id, or caller/command_id
    published_event_id text COLLATE "C",                    -- the domain event this row published, and its number: the outbox row is deleted, so
    published_sequence bigint,                              -- only this says which facts went out
    source             source_t NOT NULL,
    evidence_level     evidence_t NOT NULL,
    reason_code        text COLLATE "C" NOT NULL,
    operator           text COLLATE "C",
    provider_reference text COLLATE "C",
    amount_minor       bigint,
    currency           text COLLATE "C",
    http_status        smallint,                            -- of a money call
    psp_request_id     text COLLATE "C",                    -- the PSP's own id of that call
    trace_id           text COLLATE "C",
    version_before     bigint NOT NULL,                     -- payment_order.version that was decided on; 0 for a new or no payment
    PRIMARY KEY (payment_id, decided_at, id),
    CHECK ((published_event_id IS NULL) = (published_sequence IS NULL))
) PARTITION BY RANGE (decided_at);
CREATE TRIGGER payment_state_history_append_only BEFORE UPDATE OR DELETE ON payment_state_history
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER payment_state_history_no_truncate BEFORE TRUNCATE ON payment_state_history
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- ---------------------------------------------------------------------------------------------------------------------- outbox
CREATE SEQUENCE payment_outbox_id_seq CACHE 1;              -- ids inside a shard become visible in order: drawn under the shard's advisory lock
CREATE TABLE payment_outbox (
    shard        smallint NOT NULL CHECK (shard >= 0),      -- murmur2(key) mod the partition count: the partition the key has in payfact.inputs
    id           bigint NOT NULL DEFAULT nextval('payment_outbox_id_seq'),
    topic        text COLLATE "C" NOT NULL CHECK (topic IN ('events', 'psp-jobs')),
    key          text COLLATE "C" NOT NULL,
    payload      bytea NOT NULL,
    headers      text[] NOT NULL DEFAULT '{}' CHECK (cardinality(headers) % 2 = 0), -- name, value, name, value ...
    created_at   timestamptz NOT NULL,
    attempts     integer NOT NULL DEFAULT 0,
    available_at timestamptz,                               -- NULL until it was refused once
    dead_at      timestamptz,                               -- given up; holds the later rows of its key
    dead_reason  text COLLATE "C",
    PRIMARY KEY (shard, id),
    CHECK ((dead_at IS NULL) = (dead_reason IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER SEQUENCE payment_outbox_id_seq OWNED BY payment_outbox.id;
CREATE INDEX payment_outbox_dead ON payment_outbox (dead_at) WHERE dead_at IS NOT NULL;

CREATE TABLE publisher_lease (
    shard      smallint PRIMARY KEY CHECK (shard >= 0),
    owner      text COLLATE "C" NOT NULL,
    fence      bigint NOT NULL CHECK (fence > 0),
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- ------------------------------------------------------------------------------------------------------------------- deadlines
-- One row per thing that waits. The primary key leaves due_at out, so that a decision reschedules by upsert without knowing the old time.
-- due_at does not move while a lease runs: it is part of the transport key of the input that the lease makes.
CREATE TABLE payment_deadline (
    due_at       timestamptz NOT NULL,
    kind         text COLLATE "C" NOT NULL CHECK (kind IN
        ('SEND', 'ANSWER', 'QUERY', 'MANUAL', 'ACTION', 'AUTHORIZATION', 'ORDER_EXPIRY', 'RESERVATION', 'ORPHAN', 'APPROVAL', 'DISPUTE')),
    aggregate_id text COLLATE "C" NOT NULL,                 -- payment, attempt, capture, refund, dispute or approval request;
                                                            -- ORPHAN: psp/psp_account/transport_key
    payment_id   text COLLATE "C",
    lease_until  timestamptz,
    tries        integer NOT NULL DEFAULT 0,
    PRIMARY KEY (aggregate_id, kind)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX payment_deadline_due ON payment_deadline (due_at);

-- ---------------------------------------------------------------------------------------------------------------- PSP requests
-- The gate of money actions: inserted by the processor with the job, passed by ingest/psp, closed by the processor. A job that was closed unsent
-- and is to be sent again, and a refund repeated under its own number, get the next job id (.REFUND.2), never this row again.
CREATE TABLE psp_request (
    job_id         text COLLATE "C" PRIMARY KEY,
    payment_id     payment_id_t NOT NULL,
    action_id      action_id_t NOT NULL,
    kind           text COLLATE "C" NOT NULL CHECK (kind IN ('SUBMIT', 'CONFIRM', 'CAPTURE', 'REFUND')),
    digest         sha256_t NOT NULL,                       -- of the PspJob's bytes
    not_after      timestamptz NOT NULL,
    sending_at     timestamptz,                             -- the gate was passed: from here it may have been sent
    sent_by        text COLLATE "C",
    sends          integer NOT NULL DEFAULT 0 CHECK (sends >= 0), -- only grows: freeing a first send that certainly did not leave keeps it
    last_send_at   timestamptz,                             -- of any send, a replay too; freeing keeps it
    closed_at      timestamptz,                             -- with sending_at NULL: certainly never sent
    endpoint       text COLLATE "C",
    request        bytea,                                   -- method, URL, headers without credentials, body; sealed, for IDEMPOTENT_REPLAY
    request_key_id text COLLATE "C",
    replay_until   timestamptz,
    finished_at    timestamptz,
    outcome        bytea,                                   -- the PaymentInputs that were produced, sealed: produced again when the job comes again
    outcome_key_id text COLLATE "C",
    CHECK (job_id = action_id || '.' || kind OR starts_with(job_id, action_id || '.' || kind || '.')),
    CHECK (substr(action_id, 27, 1) = CASE kind WHEN 'CAPTURE' THEN 'C' WHEN 'REFUND' THEN 'R' ELSE 'A' END),
    CHECK (sending_at IS NULL OR sends > 0),
    CHECK ((last_send_at IS NULL) = (sends = 0)),
    CHECK ((sending_at IS NULL) = (sent_by IS NULL)),
    CHECK ((request IS NULL) = (request_key_id IS NULL)),
    CHECK ((outcome IS NULL) = (outcome_key_id IS NULL) AND (outcome IS NULL) = (finished_at IS NULL)),
    CHECK (finished_at IS NULL OR sending_at IS NOT NULL)
) WITH (fillfactor = 50);
CREATE INDEX psp_request_payment ON psp_request (payment_id);

-- ---------------------------------------------------------------------------------------------------------------- dual control
CREATE TABLE approval_request (
    request_id       text COLLATE "C" PRIMARY KEY,          -- caller/command_id of the command that needs it
    payment_id       payment_id_t NOT NULL,
    command_type     text COLLATE "C" NOT NULL,
    command          bytea NOT NULL,                        -- the Command's value bytes as signed
    sha256           sha256_t NOT NULL,                     -- of them: what an approval names
    aggregate_id     text COLLATE "C" NOT NULL,
    expected_version bigint,                                -- of the aggregate's row; a refund has none
    reason_code      text COLLATE "C" NOT NULL,
    attachments      jsonb NOT NULL CHECK (jsonb_typeof(attachments) = 'array'),        -- [{"reference", "sha256"}]
    requested_by     text COLLATE "C" NOT NULL,             -- principal
    status           text COLLATE "C" NOT NULL CHECK (status IN ('PENDING', 'APPROVED', 'DECLINED', 'EXPIRED', 'STALE')),
    expires_at       timestamptz NOT NULL,
    created_at       timestamptz NOT NULL,
    decided_at       timestamptz,
    UNIQUE (request_id, requested_by, sha256),
    CHECK (command_type = 'REQUEST_REFUND' OR (jsonb_array_length(attachments) >= 1 AND expected_version IS NOT NULL)),
    CHECK ((status = 'PENDING') = (decided_at IS NULL))
);
CREATE INDEX approval_request_payment ON approval_request (payment_id);

CREATE TABLE approval (
    request_id   text COLLATE "C" NOT NULL,
    principal    text COLLATE "C" NOT NULL,                 -- one principal counts once, whatever key signed
    approves     boolean NOT NULL,
    requested_by text COLLATE "C" NOT NULL,                 -- copied, so that the database itself refuses the requester
    sha256       sha256_t NOT NULL,                         -- copied, so that the database itself refuses an approval of other bytes
    command_id   text COLLATE "C" NOT NULL,                 -- of the APPROVE or DECLINE
    key_id       text COLLATE "C" NOT NULL,
    decided_at   timestamptz NOT NULL,
    PRIMARY KEY (request_id, principal),
    FOREIGN KEY (request_id, requested_by, sha256) REFERENCES approval_request (request_id, requested_by, sha256),
    CHECK (principal <> requested_by)
);

-- ----------------------------------------------------------------------------------------------------------------------- cases
CREATE TABLE manual_case (
    case_id          text COLLATE "C" PRIMARY KEY,          -- payment_id.kind.n; without a payment: psp/psp_account/transport_key
    payment_id       text COLLATE "C",                      -- NULL: evidence that belongs to no payment of ours
    kind             text COLLATE "C" NOT NULL CHECK (kind IN
        ('LATE_SUCCESS', 'DUPLICATE_CHARGE', 'AMOUNT_MISMATCH', 'UNEXPECTED_REFERENCE', 'OVER_REFUND', 'CONTRADICTION', 'CAPTURE_REVERSED', -- money
         'LATE_AUTHORIZATION', 'CANNOT_CLOSE', 'UNKNOWN_TOO_LONG', 'RESERVATION_OVERDUE', 'ORPHAN', 'DEAD_INPUT', 'DEAD_EVENT', 'RECONCILIATION')),
    aggregate_id     text COLLATE "C" NOT NULL,
    case_no          integer NOT NULL CHECK (case_no > 0),  -- n of the case id
    proposed_refund_minor bigint CHECK (proposed_refund_minor > 0),
    status           text COLLATE "C" NOT NULL CHECK (status IN ('OPEN', 'RESOLVED')),
    version          bigint NOT NULL DEFAULT 1 CHECK (version > 0),     -- raised when evidence is added: a resolution approved before it is stale
    evidence         jsonb NOT NULL,                        -- history and channel_event ids, proposed refund or correction
    opened_by        text COLLATE "C" NOT NULL,             -- input_id
    opened_at        timestamptz NOT NULL,
    resolved_by      text COLLATE "C",                      -- principal
    resolved_at      timestamptz,
    resolution_code  text COLLATE "C",
    CHECK ((status = 'RESOLVED') = (resolved_at IS NOT NULL) AND (status = 'RESOLVED') = (resolved_by IS NOT NULL))
);
CREATE UNIQUE INDEX manual_case_one_open ON manual_case (payment_id, kind) WHERE status = 'OPEN';
CREATE INDEX manual_case_payment ON manual_case (payment_id);
CREATE INDEX manual_case_open ON manual_case (opened_at) WHERE status = 'OPEN';

CREATE TABLE route_pause (
    psp         text COLLATE "C" NOT NULL,
    psp_account text COLLATE "C" NOT NULL,
    method      text COLLATE "C" NOT NULL,                  -- '' = every method of the account
    paused_by   text COLLATE "C" NOT NULL,
    reason_code text COLLATE "C" NOT NULL,
    paused_at   timestamptz NOT NULL,
    PRIMARY KEY (psp, psp_account, method)
);

-- -------------------------------------------------------------------------------------------------- reconciliation, settlement
CREATE TABLE recon_run (
    run_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    psp           text COLLATE "C" NOT NULL,
    psp_account   text COLLATE "C" NOT NULL,
    business_date date NOT NULL,
    file_sha256   sha256_t,
    status        text COLLATE "C" NOT NULL CHECK (status IN ('RUNNING', 'DONE', 'STATEMENT_MISSING', 'FAILED')),
    totals        jsonb NOT NULL DEFAULT '{}',
    started_at    timestamptz NOT NULL,
    finished_at   timestamptz,
    UNIQUE (psp, psp_account, business_date)
);
CREATE TABLE recon_line (
    run_id       bigint NOT NULL REFERENCES recon_run,
    line_no      integer NOT NULL,
    kind         text COLLATE "C" NOT NULL CHECK (kind IN ('PAYMENT', 'CAPTURE', 'REFUND', 'REVERSAL', 'DISPUTE', 'FEE', 'OTHER')),
    request_no   text COLLATE "C",
    reference    text COLLATE "C",
    amount_minor bigint NOT NULL,
    fee_minor    bigint NOT NULL DEFAULT 0,
    currency     currency_t NOT NULL,
    PRIMARY KEY (run_id, line_no)
);
CREATE TABLE recon_difference (
    run_id         bigint NOT NULL REFERENCES recon_run,
    difference_no  integer NOT NULL,
    class          text COLLATE "C" NOT NULL CHECK (class IN ('MISSING_HERE', 'MISSING_THERE', 'AMOUNT', 'CURRENCY', 'STATUS', 'DUPLICATE')),
    line_no        integer,
    payment_id     text COLLATE "C",
    action_id      text COLLATE "C",
    expected_minor bigint,
    found_minor    bigint,
    currency       currency_t,
    PRIMARY KEY (run_id, difference_no)
);
-- Written by the processor from STATEMENT inputs, with settled_at of the action and PaymentSettled.
CREATE TABLE settlement_entry (
    file_sha256  sha256_t NOT NULL,
    line_no      integer NOT NULL,
    psp          text COLLATE "C" NOT NULL,
    psp_account  text COLLATE "C" NOT NULL,
    payment_id   payment_id_t NOT NULL,
    action_id    action_id_t NOT NULL,                      -- attempt (AUTOMATIC capture), capture, refund or dispute
    gross_minor  bigint NOT NULL,                           -- signed: refunds are negative
    fee_minor    bigint NOT NULL,
    net_minor    bigint NOT NULL,
    currency     currency_t NOT NULL,
    settled_on   date NOT NULL,
    batch        text COLLATE "C",
    PRIMARY KEY (file_sha256, line_no)
);
CREATE INDEX settlement_entry_payment ON settlement_entry (payment_id);

-- ----------------------------------------------------------------------------------------------------------------------- audit
CREATE TABLE audit_log (
    audit_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    who        text COLLATE "C" NOT NULL,                   -- principal
    what       text COLLATE "C" NOT NULL,
    subject    text COLLATE "C",
    reason     text,
    from_where text NOT NULL,
    db_user    text NOT NULL DEFAULT session_user
);
CREATE INDEX audit_log_subject ON audit_log (subject);
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- ------------------------------------------------------------------------------------------------------------------ partitions
-- No service role may run DDL, so recovery calls this (hourly; idempotent). No default partition: it would forbid DETACH CONCURRENTLY.
-- A row without its partition fails with 23514 and an empty constraint name: an operator's fault, to be retried, never poison.
CREATE FUNCTION make_partitions(months_ahead integer DEFAULT 3) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = payfact, pg_temp AS $$
DECLARE
    first date := date_trunc('month', now() AT TIME ZONE 'UTC')::date;
    m     date;
    name  text;
    made  integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('payfact.make_partitions'));
    FOR i IN -1 .. least(greatest(months_ahead, 0), 24) LOOP
        m := (first + make_interval(months => i))::date;
        name := 'channel_event_' || to_char(m, 'YYYYMM');
        IF to_regclass(name) IS NULL THEN
            EXECUTE format('CREATE TABLE %I PARTITION OF channel_event FOR VALUES FROM (%L) TO (%L)', name, m, (m + interval '1 month')::date);
            made := made + 1;
        END IF;
        name := 'payment_state_history_' || to_char(m, 'YYYYMM');
        IF to_regclass(name) IS NULL THEN
            EXECUTE format('CREATE TABLE %I PARTITION OF payment_state_history FOR VALUES FROM (%L) TO (%L)', name,
                           m::timestamp AT TIME ZONE 'UTC', (m + interval '1 month')::timestamp AT TIME ZONE 'UTC');
            EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
            made := made + 1;
        END IF;
    END LOOP;
    RETURN made;
END $$;
REVOKE ALL ON FUNCTION make_partitions(integer) FROM PUBLIC;
SELECT make_partitions();

-- Raw evidence is read only through this, which writes the audit row in the same transaction.
CREATE FUNCTION read_evidence(p_psp text, p_psp_account text, p_transport_key text, p_who text, p_reason text, p_from_where text)
    RETURNS TABLE (body bytea, key_id text, sha256 bytea)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = payfact, pg_temp AS $$
BEGIN
    IF coalesce(btrim(p_who), '') = '' OR coalesce(btrim(p_reason), '') = '' THEN
        RAISE EXCEPTION 'a principal and a reason are needed to read raw evidence' USING ERRCODE = '22023';
    END IF;
    INSERT INTO audit_log (who, what, subject, reason, from_where)
        VALUES (p_who, 'evidence.read', p_psp || '/' || p_psp_account || '/' || p_transport_key, p_reason, p_from_where);
    RETURN QUERY SELECT e.body, e.key_id, e.sha256 FROM inbox_key k
        JOIN channel_event e ON (e.received_month, e.id) = (k.received_month, k.channel_event_id)
        WHERE k.key = inbox_digest(p_psp, p_psp_account, p_transport_key);
END $$;
REVOKE ALL ON FUNCTION read_evidence(text, text, text, text, text, text) FROM PUBLIC;
