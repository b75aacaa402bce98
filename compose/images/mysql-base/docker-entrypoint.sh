#!/bin/bash
# First start: take the package's initialised data folder and give root the password asked for.
set -euo pipefail
if [ "${1:-}" = mysqld ] && [ ! -d /var/lib/mysql/mysql ]; then
  : "${MYSQL_ROOT_PASSWORD:?MYSQL_ROOT_PASSWORD must be set}"
  cp -a /opt/mysql/initial-data/mysql/. /var/lib/mysql/
  chown -R mysql:mysql /var/lib/mysql
  cat > /var/lib/mysql/first-start.sql <<SQL
SET @@SESSION.SQL_LOG_BIN = 0;
DELETE FROM mysql.user;
FLUSH PRIVILEGES;
GRANT ALL ON *.* TO 'root'@'%' IDENTIFIED BY '${MYSQL_ROOT_PASSWORD}' WITH GRANT OPTION;
FLUSH PRIVILEGES;
SQL
  chown mysql:mysql /var/lib/mysql/first-start.sql
  exec "$@" --init-file=/var/lib/mysql/first-start.sql
fi
exec "$@"
