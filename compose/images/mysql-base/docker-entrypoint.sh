#!/bin/bash
# First start: take the package's initialised data folder and give root the password asked for.
# Until first-start.done is there a start counts as the first, so a crash in between is made good.
set -euo pipefail
data=/var/lib/mysql
if [ "${1:-}" = mysqld ] && [ ! -e $data/first-start.done ]; then
  : "${MYSQL_ROOT_PASSWORD:?MYSQL_ROOT_PASSWORD must be set}"
  [ -d $data/mysql ] || cp -r /opt/mysql/data/mysql/. $data/
  cat > $data/first-start.sql <<SQL
SET @@SESSION.SQL_LOG_BIN = 0;
DELETE FROM mysql.user;
FLUSH PRIVILEGES;
GRANT ALL ON *.* TO 'root'@'%' IDENTIFIED BY '${MYSQL_ROOT_PASSWORD}' WITH GRANT OPTION;
FLUSH PRIVILEGES;
SELECT 1 INTO OUTFILE '$data/first-start.done';
SQL
  chown -R mysql:mysql $data
  exec "$@" --init-file=$data/first-start.sql
fi
exec "$@"
