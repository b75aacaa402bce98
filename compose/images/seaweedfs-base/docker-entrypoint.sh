#!/bin/bash
# `server DIR`, as MinIO has it: an S3 server on port 9000 with MinIO's variables as its credentials.
set -euo pipefail
[ "${1:-}" = server ] || exec weed "$@"
cat > /run/s3.json <<JSON
{"identities": [{"name": "root",
  "credentials": [{"accessKey": "${MINIO_ROOT_USER:?}", "secretKey": "${MINIO_ROOT_PASSWORD:?}"}],
  "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
JSON
exec weed server -dir="${2:?folder wanted}" -ip=127.0.0.1 -ip.bind=0.0.0.0 \
  -master.volumeSizeLimitMB=256 -volume.max=0 -s3 -s3.port=9000 -s3.config=/run/s3.json
