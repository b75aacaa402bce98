#!/bin/bash
# Starts one Flink process in the foreground: jobmanager | taskmanager | gateway.
# FLINK_PROPERTIES ("key: value" lines) becomes the whole configuration file.
set -euo pipefail
conf=/opt/flink/conf/config.yaml
[ -e "$conf" ] || conf=/opt/flink/conf/flink-conf.yaml   # Flink before 1.19
printf '%s\n' "${FLINK_PROPERTIES:?no configuration given}" > "$conf"
case "${1:?role wanted: jobmanager, taskmanager or gateway}" in
  jobmanager)  exec /opt/flink/bin/jobmanager.sh start-foreground ;;
  taskmanager) exec /opt/flink/bin/taskmanager.sh start-foreground ;;
  gateway)     exec /opt/flink/bin/sql-gateway.sh start-foreground ;;
  *) echo "unknown role: $1" >&2; exit 64 ;;
esac
