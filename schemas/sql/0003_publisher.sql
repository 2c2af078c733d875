-- SPDX-License-Identifier: Apache-2.0
-- Who takes part in the publisher's shard leases, so that replicas share the shards evenly: a replica that owns no shard yet could not be seen
-- in publisher_lease. Nothing rests on it: a wrong count only makes the sharing uneven, the lease's fence decides.
SET search_path = payfact;

CREATE TABLE publisher_member (
    owner   text COLLATE "C" PRIMARY KEY,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);

GRANT SELECT, INSERT, UPDATE, DELETE ON publisher_member TO payfact_publisher;
GRANT SELECT ON publisher_member TO payfact_operator;

-- The few rows that were refused once; what stands behind them under the same key waits.
CREATE INDEX payment_outbox_refused ON payment_outbox (shard, key) WHERE attempts > 0;
