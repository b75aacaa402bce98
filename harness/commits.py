"""The form in which a table's commits are kept: manifest entries by snapshot, and files in storage."""

from __future__ import annotations

import pyarrow as pa

BASE, DELTA, CHANGELOG, METADATA, UNREAD = "base", "delta", "changelog", "metadata", "unread"
ADD, DELETE = "ADD", "DELETE"

ENTRY_SCHEMA = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("list", pa.string()),
        ("kind", pa.string()),
        ("partition", pa.string()),
        ("bucket", pa.int32()),
        ("level", pa.int32()),
        ("file", pa.string()),
        ("rows", pa.int64()),
        ("size_bytes", pa.int64()),
    ]
)
"""What every snapshot that was there says of its files, the oldest snapshot first.

`list` says where a row comes from:
- "delta" and "changelog": an entry of that manifest list, as it stands there. `kind` is ADD or DELETE.
- "base": how the base manifest list (all that was there before the commit, merged) differs from that of the
  snapshot before it in this file: ADD for a file that came in since then, DELETE for one that went. Of the
  first snapshot it is the whole base. So the bases can be put together again from these rows, and nothing
  is judged here: what the snapshot before it left in the table must be the difference, row for row.
- "metadata": a file that the snapshot needs beside data: itself, its schema, manifest lists, manifests,
  index files, statistics. `kind` is ADD; `size_bytes` is null where nothing says how large it should be.
- "unread": such a file that is gone or is no manifest; what it says is missing from the other rows.

`file` is the name of a data, changelog or index file, and of all else the path in the table's folder.
`partition` is Paimon's BinaryRow in hex. A file beside a data file (its index) is a row of its own, with
no rows and no size. A file is the same only with its level and size: compaction that lifts a file to
another level DELETEs it and ADDs it again."""

FILE_SCHEMA = pa.schema([("path", pa.string()), ("size_bytes", pa.int64())])
"""One row per file under the table's folder, `path` relative to it; listed after the entries were read."""
