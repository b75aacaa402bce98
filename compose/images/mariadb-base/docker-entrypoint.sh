#!/bin/bash
# First start: make a data folder and give root the password asked for, as the official images do.
# Until first-start.done is there a start counts as the first, so a crash in between is made good.
set -euo pipefail
data=/var/lib/mysql
if [ "${1:-}" = mysqld ]; then
  shift
  set -- mysqld --user=mysql --bind-address=0.0.0.0 "$@"
  if [ ! -e $data/first-start.done ]; then
    : "${MYSQL_ROOT_PASSWORD:?MYSQL_ROOT_PASSWORD must be set}"
    [ -d $data/mysql ] || mariadb-install-db --user=mysql --datadir=$data --skip-test-db >/dev/null
    cat > $data/first-start.sql <<SQL
SET @@SESSION.SQL_LOG_BIN = 0;
CREATE OR REPLACE USER 'root'@'%' IDENTIFIED BY '${MYSQL_ROOT_PASSWORD}';
GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;
SELECT 1 INTO OUTFILE '$data/first-start.done';
SQL
    chown mysql:mysql $data/first-start.sql
    exec "$@" --init-file=$data/first-start.sql
  fi
fi
exec "$@"
