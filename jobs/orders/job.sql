-- The guide's primary-key table (§3.3) fed by MySQL CDC. The settings of §3.1 come from the profile
-- (jobs/profiles/), as does ${table_options}: the guide's WITH options that Paimon knows.

CREATE CATALOG paimon WITH (
    'type' = 'paimon',
    'warehouse' = '${warehouse}',
    's3.endpoint' = '${s3_endpoint}',
    's3.access-key' = '${s3_access_key}',
    's3.secret-key' = '${s3_secret_key}',
    's3.path.style.access' = 'true'${catalog_options}
);

CREATE DATABASE IF NOT EXISTS paimon.dwd;

CREATE TABLE IF NOT EXISTS paimon.dwd.dwd_order_detail (
    order_id BIGINT NOT NULL,
    user_id BIGINT,
    order_amount DECIMAL(18, 2),
    order_status TINYINT,
    create_time TIMESTAMP(3),
    update_time TIMESTAMP(3),
    dt STRING,
    PRIMARY KEY (dt, order_id) NOT ENFORCED
) PARTITIONED BY (dt)
WITH (
    ${table_options}
);

CREATE TEMPORARY TABLE source_orders (
    order_id BIGINT NOT NULL,
    user_id BIGINT,
    order_amount DECIMAL(18, 2),
    order_status TINYINT,
    create_time TIMESTAMP(3),
    update_time TIMESTAMP(3),
    dt STRING,
    PRIMARY KEY (order_id) NOT ENFORCED
) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = '${source_host}',
    'port' = '${source_port}',
    'username' = '${source_user}',
    'password' = '${source_password}',
    'database-name' = 'shop',
    'table-name' = 'source_orders',
    'server-id' = '${server_id_range}',  -- one range per job: a shared id makes MySQL cut the other off
    'server-time-zone' = 'UTC',
    'scan.startup.mode' = '${startup_mode}',
    'scan.incremental.snapshot.chunk.size' = '${chunk_size}'
);

INSERT INTO paimon.dwd.dwd_order_detail
SELECT order_id, user_id, order_amount, order_status, create_time, update_time, dt
FROM source_orders;
